//! What the machine gives the switch.

use crate::layout::{or_dash, table, time};
use holdfast_api::amount::rate_text;
use holdfast_api::message::{HostPort, HostReply, HostWorker, XdpMode};

pub(super) fn host(reply: &HostReply) -> String {
    let mut ports = table(
        [
            "port",
            "netdev",
            "driver",
            "xdp",
            "link",
            "on here",
            "on at peer",
            "channels",
            "lossless",
        ],
        7,
    );
    for port in &reply.ports {
        ports.add_row(port_row(port));
    }
    let mut workers = table(["worker", "thread", "ports", "policy", "cores", "priority"], 5);
    for worker in &reply.workers {
        workers.add_row(worker_row(worker));
    }
    let mut out = format!("{ports}\n\n{workers}\n");
    for port in &reply.ports {
        if let Some(why) = &port.unread {
            out.push_str(&format!("{}: can't be read: {why}\n", port.port));
        }
    }
    out.push_str("What is wrong with it: holdfast lint --live\n");
    out
}

fn port_row(port: &HostPort) -> [String; 9] {
    let netns = port.netns.as_ref().map(|netns| format!("{netns}/")).unwrap_or_default();
    let netdev = port.netdev.as_ref();
    let peer = netdev.and_then(|netdev| netdev.peer.as_ref());
    let xdp = match port.xdp_mode {
        XdpMode::Native => "native",
        XdpMode::Generic => "generic",
        XdpMode::None => "-",
    };
    [
        port.port.clone(),
        format!("{netns}{}", port.ifname),
        or_dash(netdev.map(|netdev| netdev.driver.clone()).filter(|name| !name.is_empty())),
        xdp.to_owned(),
        or_dash(netdev.and_then(|netdev| netdev.link_bits_per_second).map(rate_text)),
        or_dash(netdev.and_then(|netdev| names(&netdev.offloads))),
        match peer {
            Some(peer) if !peer.reached => "out of reach".to_owned(),
            peer => or_dash(peer.and_then(|peer| names(&peer.offloads))),
        },
        match netdev {
            Some(netdev) => format!("{} of {} bound", port.queues, netdev.channels),
            None => "-".to_owned(),
        },
        format!("{} ago", time(port.lossless_idle_ns)),
    ]
}

fn names(offloads: &[String]) -> Option<String> {
    (!offloads.is_empty()).then(|| offloads.join(", "))
}

fn worker_row(worker: &HostWorker) -> [String; 6] {
    let cores: Vec<String> = worker.cpus.iter().map(u32::to_string).collect();
    [
        worker.worker.to_string(),
        or_dash(worker.thread),
        worker.ports.join(","),
        worker.policy.clone(),
        or_dash((!cores.is_empty()).then(|| cores.join(","))),
        or_dash((worker.priority > 0).then_some(worker.priority)),
    ]
}
