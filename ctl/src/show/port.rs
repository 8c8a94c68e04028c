//! Ports, classes and forwarding entries.

use crate::layout::{bytes, drops, or_dash, table, time};
use holdfast_api::amount::rate_text;
use holdfast_api::message::{
    ClassifyReply, FdbKind, FdbReply, Peer, PortState, PortStatus, PortsReply, XdpMode,
};

/// Ports and workers; what bring-up changed only if `notes` are asked for.
pub(super) fn ports(reply: &PortsReply, notes: bool) -> String {
    let mut out = String::new();
    let mut link = table(
        ["port", "state", "netdev", "mac", "xdp", "speed", "mtu", "worker", "peer", "stall ok"],
        5,
    );
    let mut traffic = table(
        ["port", "rx frames", "rx", "tx frames", "tx", "overrun", "lossless lost", "drops"],
        1,
    );
    for port in &reply.ports {
        link.add_row([
            port.port.clone(),
            state(port),
            netdev(port),
            port.mac.clone(),
            xdp(port),
            rate_text(port.speed_bits_per_second),
            port.mtu.to_string(),
            port.worker.to_string(),
            peer(port.peer).to_owned(),
            time(port.stall_survived_ns),
        ]);
        traffic.add_row([
            port.port.clone(),
            port.rx_frames.to_string(),
            bytes(port.rx_bytes),
            port.tx_frames.to_string(),
            bytes(port.tx_bytes),
            port.receive_overrun.to_string(),
            port.lossless_violations.to_string(),
            drops(&port.drops),
        ]);
    }
    out.push_str(&format!("{link}\n\n{traffic}\n\n{}\n", workers(reply)));
    let all = reply.ports.iter().flat_map(|port| port.notes.iter().map(move |n| (&port.port, n)));
    if notes {
        all.for_each(|(port, note)| out.push_str(&format!("{port}: {note}\n")));
    } else if all.count() > 0 {
        out.push_str("What bring-up changed at the netdevs: holdfast show ports --notes\n");
    }
    out
}

fn workers(reply: &PortsReply) -> String {
    let mut out =
        table(["worker", "ports", "cpu", "busy", "longest step", "longest gap", "handovers"], 2);
    for worker in &reply.workers {
        out.add_row([
            worker.worker.to_string(),
            worker.ports.join(","),
            or_dash(worker.cpu),
            format!("{:.1} %", worker.busy_ratio * 100.0),
            time(worker.longest_step_ns),
            time(worker.longest_gap_ns),
            worker.handovers.to_string(),
        ]);
    }
    out.to_string()
}

fn state(port: &PortStatus) -> String {
    match (port.state, &port.down_reason) {
        (PortState::Up, _) => "up".to_owned(),
        (PortState::Held, _) => "held".to_owned(),
        (PortState::Down, None) => "down".to_owned(),
        (PortState::Down, Some(reason)) => format!("down: {reason}"),
    }
}

fn netdev(port: &PortStatus) -> String {
    let netns = port.netns.as_ref().map(|netns| format!("{netns}/")).unwrap_or_default();
    let wire = port.wire.as_ref().map(|wire| format!(" <-> {wire}")).unwrap_or_default();
    format!("{netns}{}{wire}", port.ifname)
}

fn xdp(port: &PortStatus) -> String {
    let mode = match port.xdp_mode {
        XdpMode::Native => "native",
        XdpMode::Generic => "generic",
        XdpMode::None => return "-".to_owned(),
    };
    let copy = if port.zero_copy { "zero-copy" } else { "copy" };
    format!("{mode} {copy}, {} q", port.queues)
}

const fn peer(peer: Peer) -> &'static str {
    match peer {
        Peer::Unknown => "-",
        Peer::Obeys => "obeys",
        Peer::Deaf => "deaf",
    }
}

pub(super) fn classify(reply: &ClassifyReply) -> String {
    let mut out = String::new();
    for port in &reply.ports {
        let mut rows = table(["field", "value", "CoS", "PG", "queue", "frames"], 1);
        let maps = &port.maps;
        let number = |list: &[u8], at: usize| or_dash(list.get(at).copied());
        let fields = [
            ("DSCP", &port.dscp_frames, &maps.dscp_to_cos),
            ("PCP", &port.pcp_frames, &maps.pcp_to_cos),
        ];
        for (field, frames, to_cos) in fields {
            for (value, frames) in frames.iter().enumerate().filter(|(_, frames)| **frames > 0) {
                let cos = to_cos.get(value).map_or(0, |cos| usize::from(*cos));
                rows.add_row([
                    field.to_owned(),
                    value.to_string(),
                    number(to_cos, value),
                    number(&maps.cos_to_pg, cos),
                    number(&maps.cos_to_queue, cos),
                    frames.to_string(),
                ]);
            }
        }
        let unclassified = port.unclassified_frames.to_string();
        let default = maps.default_cos.to_string();
        rows.add_row(["neither", "-", &default, "-", "-", &unclassified]);
        out.push_str(&format!(
            "Port {}, trusts {}: frames received by field, and where that value leads\n{rows}\n\n",
            port.port, maps.trust
        ));
    }
    out
}

pub(super) fn fdb(reply: &FdbReply) -> String {
    let mut rows = table(["address", "vlan", "port", "kind", "age"], 4);
    for entry in &reply.entries {
        let (kind, age) = match entry.kind {
            FdbKind::Static => ("static", "-".to_owned()),
            FdbKind::Learned => ("learned", time(entry.age_ns)),
        };
        rows.add_row([&entry.mac, &or_dash(entry.vlan), &entry.port, kind, &age]);
    }
    format!(
        "{rows}\n{} of {} entries used, {} addresses not learned for want of room, {} moves\n",
        reply.used, reply.size, reply.full, reply.moves
    )
}
