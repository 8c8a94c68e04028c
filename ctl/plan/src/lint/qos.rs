//! Q02..Q06: which class goes where, and before whom. Q01 is found when the document is read.

use super::{Id, LintFinding, PortView, Subject};
use holdfast_api::doc::Finding;
use holdfast_core::ids::{Cos, Dscp, Pcp, PgId, QueueId};
use holdfast_core::profile::{Service, Trust};

/// CNPs as RoCE NICs send them: DSCP 48, and PCP 6 where ports believe PCP.
const CNP_DSCP: u8 = 48;
const CNP_PCP: u8 = 6;

pub(super) fn check(subject: &Subject<'_>, found: &mut Vec<LintFinding>) {
    for port in subject.ports() {
        notifications(subject, &port, found);
        shares(subject, &port, found);
        classes(&port, found);
    }
    dscp_maps(subject, found);
}

fn key(port: &PortView<'_>, queue: QueueId, name: &str) -> String {
    port.key(format_args!("queue.{queue}.{name}"))
}

/// Q02.
fn notifications(subject: &Subject<'_>, port: &PortView<'_>, found: &mut Vec<LintFinding>) {
    let maps = &port.spec.maps;
    let cos = match maps.trust {
        Trust::Dscp => maps.dscp_to_cos[Dscp::from_bits(CNP_DSCP)],
        Trust::Pcp => maps.pcp_to_cos[Pcp::from_bits(CNP_PCP)],
        Trust::Port => maps.default_cos,
    };
    let cnp = maps.cos_to_queue[cos];
    let strict = |queue: QueueId| port.spec.queues[queue].service == Service::Strict;
    // Among strict queues the higher number goes first (SPEC 6).
    let before = |data: QueueId| strict(cnp) && (!strict(data) || cnp > data);
    // CNPs may be lossless themselves: a queue that only they use isn't one of data.
    let carries = |data: QueueId| {
        subject.ports().any(|ingress| {
            let maps = &ingress.spec.maps;
            let lossless = |cos: Cos| ingress.spec.pgs[maps.cos_to_pg[cos]].lossless;
            let leaves = |cos: Cos| port.spec.maps.cos_to_queue[cos] == data;
            Cos::all().any(|other| other != cos && lossless(other) && leaves(other))
        })
    };
    let Some(data) = QueueId::all().find(|data| carries(*data) && !before(*data)) else {
        return;
    };
    let message = if data == cnp {
        format!("CNPs (CoS {cos}) share queue {data} with lossless data")
    } else {
        format!("CNPs (CoS {cos}, queue {cnp}) aren't served before lossless queue {data}")
    };
    let fix = "map DSCP 48 to a CoS of its own whose queue is strict and above the lossless ones";
    let finding = Finding::new(key(port, cnp, "strict"), message, fix);
    found.push(LintFinding::gravest(Id::Q02, finding).at(port));
}

/// Q03 and Q04.
fn shares(subject: &Subject<'_>, port: &PortView<'_>, found: &mut Vec<LintFinding>) {
    for (queue, entry) in port.spec.queues.iter() {
        match entry.service {
            Service::Weight(0) => {
                let fix = "use 1..1000, or strict = true";
                let finding = Finding::new(key(port, queue, "weight"), "weight 0", fix);
                let finding = finding.numbers(0, "at least 1");
                found.push(LintFinding::gravest(Id::Q03, finding).at(port));
            }
            Service::Strict
                if entry.min_rate.is_none() && subject.carries_lossless(port.spec, queue) =>
            {
                let message = "a lossless queue is strict, without weight or minimum bandwidth";
                let fix = "give it a weight, or a min_rate";
                let finding = Finding::new(key(port, queue, "strict"), message, fix);
                found.push(LintFinding::gravest(Id::Q04, finding).at(port));
            }
            Service::Weight(_) | Service::Strict => {}
        }
    }
}

/// Q06: CoS that frames can really get, in one lossless PG.
fn classes(port: &PortView<'_>, found: &mut Vec<LintFinding>) {
    let maps = &port.spec.maps;
    let used = |cos: Cos| {
        let by_dscp = maps.trust == Trust::Dscp && maps.dscp_to_cos.0.contains(&cos);
        let by_pcp = maps.trust != Trust::Port && maps.pcp_to_cos.0.contains(&cos);
        by_dscp || by_pcp || maps.default_cos == cos
    };
    for pg in PgId::all().filter(|pg| port.spec.pgs[*pg].lossless) {
        let inside = Cos::all().filter(|cos| maps.cos_to_pg[*cos] == pg && used(*cos));
        let inside: Vec<String> = inside.map(|cos| cos.to_string()).collect();
        if inside.len() < 2 {
            continue;
        }
        let message = format!("several classes share lossless PG {pg}: CoS {}", inside.join(", "));
        let fix = "map all but the lossless class to another PG";
        let finding = Finding::new(port.key("maps.cos_to_pg"), message, fix);
        let finding = finding.numbers(inside.len(), 1);
        found.push(LintFinding::gravest(Id::Q06, finding).at(port).of_pg(port.number, pg));
    }
}

/// Q05: against the first port that believes DSCP.
fn dscp_maps(subject: &Subject<'_>, found: &mut Vec<LintFinding>) {
    let mut ports = subject.ports().filter(|port| port.spec.maps.trust == Trust::Dscp);
    let Some(first) = ports.next() else { return };
    for port in ports {
        let (mine, its) = (&port.spec.maps.dscp_to_cos, &first.spec.maps.dscp_to_cos);
        let Some((dscp, cos)) = mine.iter().find(|(dscp, cos)| its[*dscp] != **cos) else {
            continue;
        };
        let message = format!("the DSCP map differs from that of {}: DSCP {dscp}", first.name);
        let fix = "keep the map in the shared [maps] section";
        let finding = Finding::new(port.key("maps.dscp_to_cos"), message, fix);
        let finding = finding.numbers(format!("CoS {cos}"), format!("CoS {}", its[dscp]));
        found.push(LintFinding::gravest(Id::Q05, finding).at(&port));
    }
}
