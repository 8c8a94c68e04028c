//! CONFIG_DB of a plan.

use super::egress::queue;
use super::ingress::{pg, pools, Pools};
use super::tables::{owned, Tables};
use super::{ExportInput, Exported};
use crate::facts::PortFacts;
use crate::import::DETECTION;
use holdfast_api::amount::span_text;
use holdfast_api::doc::Finding;
use holdfast_core::ids::{Cos, Dscp, Pcp, Priority};
use holdfast_core::profile::{PfcSpec, PortSpec, Resume, Trust, WatchdogAction};
use holdfast_core::units::{Nanos, Quanta};

/// Writes the tables.
pub(super) fn export(input: &ExportInput<'_>) -> Result<Exported, Vec<Finding>> {
    let (mut tables, mut wrong) = (Tables::default(), Vec::new());
    let spec = input.plan.spec();
    let pools = pools(input, &mut tables, &mut wrong);
    for (facts, port) in input.facts.ports.iter().zip(&spec.ports) {
        port_row(facts, &mut tables, &mut wrong);
        maps(&facts.name, port, &mut tables, &mut wrong);
        pfc(&facts.name, &port.pfc, &mut wrong);
        bind(&facts.name, port, input, &pools, &mut tables, &mut wrong);
        watchdog(&facts.name, port, &mut tables, &mut wrong);
    }
    pacing(input, &mut wrong);
    once(&mut wrong);
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let (total, cell) = (spec.total.0, spec.cell.bytes());
    let mut notes = vec![format!(
        "CONFIG_DB has neither cells nor their size: read it back with --cells {total} \
         --cell-bytes {cell}"
    )];
    if input.doc.formula.is_some() || input.doc.smallest_lossless_frame.is_some() {
        notes.push("formula and smallest_lossless_frame have no place in CONFIG_DB".to_owned());
    }
    Ok(Exported { text: tables.text(), notes })
}

/// Ports that share a section are wrong by the same key: it is said for the first of them.
fn once(wrong: &mut Vec<Finding>) {
    let shared = |key: &str| match key.strip_prefix("port.").and_then(|key| key.split_once('.')) {
        Some((_, shared)) => shared.to_owned(),
        None => key.to_owned(),
    };
    let mut said: Vec<(String, String)> = Vec::new();
    wrong.retain(|finding| {
        let this = (shared(&finding.key), finding.message.clone());
        let fresh = !said.contains(&this);
        said.push(this);
        fresh
    });
}

fn port_row(facts: &PortFacts, tables: &mut Tables, wrong: &mut Vec<Finding>) {
    let bits = facts.speed.bits_per_second();
    if bits % 1_000_000 != 0 {
        let message = "SONiC has speeds of whole Mb/s";
        let key = format!("port.{}.speed", facts.name);
        wrong.push(Finding::new(key, message, "declare another speed in switch.toml"));
    }
    let fields = vec![
        ("speed", (bits / 1_000_000).to_string()),
        ("mtu", facts.mtu.to_string()),
        ("admin_status", "up".to_owned()),
    ];
    tables.row("PORT", &facts.name, owned(fields));
}

fn maps(name: &str, port: &PortSpec, tables: &mut Tables, wrong: &mut Vec<Finding>) {
    let maps = &port.maps;
    let pairs = |list: Vec<(u8, u8)>| {
        list.into_iter().map(|(from, to)| (from.to_string(), to.to_string())).collect::<Vec<_>>()
    };
    if maps.default_cos.number() != 0 {
        let message = "in SONiC what no map names is TC 0";
        let key = format!("port.{name}.maps.default_cos");
        wrong.push(Finding::new(key, message, "set default_cos = 0"));
    }
    let dscp = Dscp::all().map(|dscp| (dscp.number(), maps.dscp_to_cos[dscp].number())).collect();
    let pcp = Pcp::all().map(|pcp| (pcp.number(), maps.pcp_to_cos[pcp].number())).collect();
    let mut bound = Vec::new();
    if maps.trust == Trust::Dscp {
        bound.push(("dscp_to_tc_map", tables.named("DSCP_TO_TC_MAP", "MAP", pairs(dscp))));
    }
    if maps.trust != Trust::Port {
        bound.push(("dot1p_to_tc_map", tables.named("DOT1P_TO_TC_MAP", "MAP", pairs(pcp))));
    }
    let pgs = Cos::all().map(|cos| (cos.number(), maps.cos_to_pg[cos].number())).collect();
    bound.push(("tc_to_pg_map", tables.named("TC_TO_PRIORITY_GROUP_MAP", "MAP", pairs(pgs))));
    let queues = Cos::all().map(|cos| (cos.number(), maps.cos_to_queue[cos].number())).collect();
    bound.push(("tc_to_queue_map", tables.named("TC_TO_QUEUE_MAP", "MAP", pairs(queues))));
    let (mut stops, mut paused) = (Vec::new(), Vec::new());
    for priority in Priority::all() {
        let queues: Vec<u8> =
            maps.priority_to_queues[priority].iter().map(|queue| queue.number()).collect();
        match queues.as_slice() {
            [queue] => stops.push((priority.number(), *queue)),
            _ => {
                let key = format!("port.{name}.maps.priority_to_queues.{priority}");
                let message = "in SONiC the pause of a priority stops one queue";
                let finding = Finding::new(key, message, "map the priority to one queue");
                wrong.push(finding.numbers(format!("{queues:?}"), 1));
            }
        }
        let by: Vec<u8> = (port.pgs.iter())
            .filter(|(_, pg)| pg.lossless && pg.priorities.contains(priority))
            .map(|(pg, _)| pg.number())
            .collect();
        match by.as_slice() {
            [] => {}
            [pg] => paused.push((priority.number(), *pg)),
            [_, pg, ..] => {
                let key = format!("port.{name}.pg.{pg}.priorities");
                let message = format!("in SONiC one PG pauses a priority, {priority} has several");
                wrong.push(Finding::new(key, message, "leave it to one PG"));
            }
        }
    }
    let stops = pairs(stops);
    bound.push(("pfc_to_queue_map", tables.named("MAP_PFC_PRIORITY_TO_QUEUE", "MAP", stops)));
    let paused = pairs(paused);
    let table = "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP";
    bound.push(("pfc_to_pg_map", tables.named(table, "MAP", paused)));
    let enabled: Vec<String> = port.pfc.enabled.iter().map(|p| p.number().to_string()).collect();
    bound.push(("pfc_enable", enabled.join(",")));
    bound.push(("pfcwd_sw_enable", enabled.join(",")));
    tables.row("PORT_QOS_MAP", name, owned(bound));
}

fn pfc(name: &str, pfc: &PfcSpec, wrong: &mut Vec<Finding>) {
    let mut only = |key: &str, value: String, here: bool, limit: &str| {
        if !here {
            let key = format!("port.{name}.pfc.{key}");
            let message = "CONFIG_DB has no place for it";
            wrong.push(Finding::new(key, message, "remove the key").numbers(value, limit));
        }
    };
    let quanta = pfc.quanta;
    only("pause_quanta", quanta.0.to_string(), quanta == Quanta(u16::MAX), "65535");
    only("resume", "expire".to_owned(), pfc.resume == Resume::Xon, "xon");
    let mark = pfc.rx_backlog_mark;
    let usual = crate::resolve::RX_BACKLOG_MARK;
    only("rx_backlog_mark", mark.to_string(), mark == usual, &usual.to_string());
}

/// Pacing is this switch's own.
fn pacing(input: &ExportInput<'_>, wrong: &mut Vec<Finding>) {
    let own = input.doc.ports.iter().map(|(name, port)| (format!("port.{name}."), &port.scheduler));
    for (prefix, scheduler) in own.chain([(String::new(), &input.doc.scheduler)]) {
        let keys = [
            ("tx_inflight", scheduler.tx_inflight.is_some()),
            ("catch_up", scheduler.catch_up.is_some()),
        ];
        for (key, _) in keys.into_iter().filter(|(_, there)| *there) {
            let key = format!("{prefix}scheduler.{key}");
            wrong.push(Finding::new(key, "CONFIG_DB has no place for it", "remove the key"));
        }
    }
}

fn bind(
    name: &str,
    port: &PortSpec,
    input: &ExportInput<'_>,
    pools: &Pools,
    tables: &mut Tables,
    wrong: &mut Vec<Finding>,
) {
    let spec = input.plan.spec();
    for (id, account) in port.pgs.iter() {
        let key = format!("port.{name}.pg.{id}");
        let profile = pg(&key, account, spec, tables, wrong);
        let fields = vec![("profile", profile)];
        tables.row("BUFFER_PG", &format!("{name}|{id}"), owned(fields));
    }
    for (id, entry) in port.queues.iter() {
        let key = format!("port.{name}.queue.{id}");
        let lossless = Cos::all().any(|cos| {
            port.maps.cos_to_queue[cos] == id && port.pgs[port.maps.cos_to_pg[cos]].lossless
        });
        let row = format!("{name}|{id}");
        queue(&key, &row, entry, lossless, pools, spec.cell, tables, wrong);
    }
}

fn watchdog(name: &str, port: &PortSpec, tables: &mut Tables, wrong: &mut Vec<Finding>) {
    let Some(plan) = &port.watchdog else { return };
    let at = |key: &str| format!("port.{name}.watchdog.{key}");
    if !DETECTION.contains(&plan.detection_time) {
        // The restoration times of profiles are pfcwd's already.
        let limit = format!("{}..{}", span_text(DETECTION.start().0), span_text(DETECTION.end().0));
        let message = "SONiC's pfcwd takes no such detection time";
        let finding = Finding::new(at("detection_time"), message, format!("use {limit}"));
        wrong.push(finding.numbers(span_text(plan.detection_time.0), limit));
    }
    if plan.back_off {
        let message = "SONiC's pfcwd restores by the same time after every storm";
        let finding = Finding::new(at("back_off"), message, "set back_off = false");
        wrong.push(finding.numbers(true, false));
    }
    let mut time = |key: &str, time: Nanos| {
        if time.0 % 1_000_000 != 0 {
            let finding = Finding::new(at(key), "SONiC has whole milliseconds", "round it");
            wrong.push(finding.numbers(span_text(time.0), "a multiple of 1ms"));
        }
        (time.0 / 1_000_000).to_string()
    };
    let fields = vec![
        ("detection_time", time("detection_time", plan.detection_time)),
        ("restoration_time", time("restoration_time", plan.restoration_time)),
        (
            "action",
            match plan.action {
                WatchdogAction::Drop => "drop",
                WatchdogAction::Forward => "forward",
                WatchdogAction::Alert => "alert",
            }
            .to_owned(),
        ),
    ];
    tables.row("PFC_WD", name, owned(fields));
}
