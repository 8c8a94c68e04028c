//! H01..H08 and P10: what the machine below a running switch does to it, and what its own counters
//! say of the profile. Judged from answers of the switch; nothing is asked here.

use super::{Id, LintFinding, PortView, Running, Severity, Subject};
use crate::headroom;
use crate::resolve::formula::XOFF_REACTION;
use holdfast_api::amount::{rate_text, span_text};
use holdfast_api::doc::Finding;
use holdfast_api::message::{Histogram, HostNetdev, HostPort, HostWorker, PortStatus, XdpMode};
use holdfast_core::units::{BitRate, FrameLen, Nanos};

/// PFC without lossless traffic is worth a word after this.
const UNUSED: Nanos = Nanos::millis(3_600_000);
/// The policies of sched(7) under which no ordinary process takes the core away.
const REAL_TIME: [&str; 3] = ["fifo", "rr", "deadline"];

pub(super) fn check(subject: &Subject<'_>, running: &Running<'_>, found: &mut Vec<LintFinding>) {
    for port in subject.ports() {
        if let Some(host) = running.host(port.name) {
            if let Some(netdev) = &host.netdev {
                vlan_offloads(&port, netdev, found);
                checksums(&port, netdev, found);
                channels(&port, host.queues, netdev.channels, found);
                kept_pfc(&port, netdev, found);
                speed(&port, netdev, found);
            }
            generic(&port, host, found);
            unused(&port, host, found);
        }
        reaction(subject, &port, running.reaction(port.name), found);
        if let Some(status) = running.port(port.name) {
            let gap = running.worker(status.worker).map_or(0, |worker| worker.longest_gap_ns);
            stall(&port, status, Nanos(gap), subject.smallest, found);
        }
    }
    for worker in &running.host.workers {
        scheduling(worker, found);
    }
}

fn note(port: &PortView<'_>, id: Id, severity: Severity, what: Finding) -> LintFinding {
    LintFinding::new(id, severity, what).at(port)
}

/// The offloads of these that the names begin with or hold, as one text.
fn those(offloads: &[String], is_one: impl Fn(&str) -> bool) -> Option<String> {
    let names: Vec<&str> = offloads.iter().map(String::as_str).filter(|n| is_one(n)).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// H01, here and at a veth's other end.
fn vlan_offloads(port: &PortView<'_>, netdev: &HostNetdev, found: &mut Vec<LintFinding>) {
    let is_vlan = |name: &str| name.contains("-vlan-");
    let fix = "ethtool -K DEV rxvlan off txvlan off on that netdev, or restart the switch";
    let mut tell = |key: &str, message: &str, on: Option<String>| {
        let Some(on) = on else { return };
        let finding = Finding::new(port.key(key), message, fix).numbers(on, "off");
        found.push(note(port, Id::H01, Severity::Error, finding));
    };
    let message = "VLAN offload is on at the netdev";
    tell("offloads", message, those(&netdev.offloads, is_vlan));
    let peer = netdev.peer.as_ref().and_then(|peer| those(&peer.offloads, is_vlan));
    tell("peer.offloads", "VLAN offload is on at the veth's other end", peer);
}

/// H02. The netdev's own setting doesn't matter: what AF_XDP sends is sent as it is.
fn checksums(port: &PortView<'_>, netdev: &HostNetdev, found: &mut Vec<LintFinding>) {
    let Some(peer) = &netdev.peer else { return };
    let key = port.key("peer.offloads");
    if !peer.reached {
        let message = "the veth's other end can't be looked at: its host may send frames with \
                       unfinished checksums";
        let fix = "look there: ethtool -K DEV tx off txvlan off";
        found.push(note(port, Id::H02, Severity::Warning, Finding::new(key, message, fix)));
        return;
    }
    let is_checksum = |name: &str| name.starts_with("tx-checksum-");
    let Some(on) = those(&peer.offloads, is_checksum) else { return };
    let message = "checksum offload is on at the veth's other end";
    let fix = "ethtool -K DEV tx off on that netdev, or restart the switch";
    let finding = Finding::new(key, message, fix).numbers(on, "off");
    found.push(note(port, Id::H02, Severity::Error, finding));
}

/// H03.
fn channels(port: &PortView<'_>, bound: u32, present: u32, found: &mut Vec<LintFinding>) {
    if present <= bound {
        return;
    }
    let message = "the netdev receives on more channels than the switch has bound";
    let fix = "ethtool -L DEV to as many as are bound, or raise queues in the switch file";
    let finding = Finding::new(port.key("channels"), message, fix).numbers(present, bound);
    found.push(note(port, Id::H03, Severity::Error, finding));
}

/// H04.
fn generic(port: &PortView<'_>, host: &HostPort, found: &mut Vec<LintFinding>) {
    if host.xdp_mode != XdpMode::Generic {
        return;
    }
    let message = "XDP runs in the kernel's generic path";
    let fix = "use a driver with XDP, and xdp = \"auto\" in the switch file";
    let finding = Finding::new(port.key("xdp"), message, fix).numbers("generic", "native");
    found.push(note(port, Id::H04, Severity::Warning, finding));
}

/// H05.
fn scheduling(worker: &HostWorker, found: &mut Vec<LintFinding>) {
    let real_time = REAL_TIME.contains(&worker.policy.as_str());
    // A thread that the kernel says nothing of has ended, or /proc isn't there.
    if real_time || worker.cpus.len() == 1 || worker.cpus.is_empty() {
        return;
    }
    let message = format!(
        "worker {} has no core of its own and no real-time priority: others may run instead",
        worker.worker
    );
    let thread = worker.thread.map_or_else(|| "THREAD".to_owned(), |thread| thread.to_string());
    let fix = format!(
        "give it a core of its own (taskset -c -p CORE {thread}) or a real-time priority \
         (chrt -f -p 50 {thread}), after each start"
    );
    let value = format!("{}, {} cores", worker.policy, worker.cpus.len());
    let finding = Finding::new(format!("worker.{}", worker.worker), message, fix);
    let finding = finding.numbers(value, "fifo, rr or deadline, or 1 core");
    let mut found_here = LintFinding::new(Id::H05, Severity::Warning, finding);
    found_here.ports.clone_from(&worker.ports);
    found.push(found_here);
}

/// H06.
fn kept_pfc(port: &PortView<'_>, netdev: &HostNetdev, found: &mut Vec<LintFinding>) {
    if !netdev.may_keep_pfc || port.spec.pfc.enabled.is_empty() {
        return;
    }
    let message = "NICs of this driver may keep PFC frames to themselves, sent or received";
    let fix = "try it: holdfast preflight PORT --peer PORT2 (deploy/NICS.md)";
    let finding = Finding::new(port.key("driver"), message, fix);
    let finding = finding.numbers(&netdev.driver, "a driver that lets 0x8808 pass");
    found.push(note(port, Id::H06, Severity::Warning, finding));
}

/// H07: Headroom against formula `cpu`. Not with a share of the measured times but with the
/// longest: Headroom has to hold in the worst case, and that one has happened.
fn reaction(
    subject: &Subject<'_>,
    port: &PortView<'_>,
    measured: Option<&Histogram>,
    found: &mut Vec<LintFinding>,
) {
    let (span, how) = match measured {
        Some(times) if times.count > 0 => (Nanos(times.max_ns), "measured"),
        _ => (XOFF_REACTION, "assumed, no XOFF was sent yet"),
    };
    let (spec, cell) = (port.spec, subject.spec.cell);
    let largest = FrameLen(spec.largest_frame());
    let terms = headroom::cpu(spec.speed, span, spec.pfc.rx_backlog_mark, largest, cell);
    for (pg, account) in spec.pgs.iter().filter(|(_, account)| account.lossless) {
        if account.headroom >= terms.need {
            continue;
        }
        let message = format!(
            "Headroom is below what a switch on a CPU needs: {} within {} of reaction ({how}) + \
             {} frames x {}",
            terms.reaction,
            span_text(span.0),
            terms.frames,
            terms.cells_a_frame
        );
        let fix = "raise it, or lower the port's MTU or rx_backlog_mark";
        let finding = Finding::new(port.key(format_args!("pg.{pg}.headroom")), message, fix);
        let finding = finding.numbers(account.headroom.0, terms.need.0);
        found.push(note(port, Id::H07, Severity::Error, finding).of_pg(port.number, pg));
    }
}

/// H07: the RX ring against the worst stall of the port's worker.
fn stall(
    port: &PortView<'_>,
    status: &PortStatus,
    gap: Nanos,
    smallest: FrameLen,
    found: &mut Vec<LintFinding>,
) {
    if !port.spec.pgs.iter().any(|(_, account)| account.lossless) {
        return;
    }
    let mark = port.spec.pfc.rx_backlog_mark;
    let needed = u64::from(mark) + frames_in(port.spec.speed, gap, smallest);
    if u64::from(status.rx_ring) >= needed {
        return;
    }
    let message = format!(
        "the RX ring is smaller than its mark of {mark} and what arrives in the worker's worst \
         stall of {}, in frames of {} B",
        span_text(gap.0),
        smallest.0
    );
    let fix = "raise rings.rx in the switch file, or give the worker a core: see H05";
    let finding = Finding::new(port.key("rx_ring"), message, fix);
    let finding = finding.numbers(status.rx_ring, needed);
    found.push(note(port, Id::H07, Severity::Warning, finding));
}

/// Frames of `length` that begin within `span`.
fn frames_in(speed: BitRate, span: Nanos, length: FrameLen) -> u64 {
    speed.bytes_in(span).0.div_ceil(u64::from(length.on_wire().0))
}

/// H08. A faster wire breaks what is counted by the declared speed; a slower one only moves the
/// queue out of sight.
fn speed(port: &PortView<'_>, netdev: &HostNetdev, found: &mut Vec<LintFinding>) {
    let declared = port.spec.speed.bits_per_second();
    let Some(link) = netdev.link_bits_per_second.filter(|link| *link != declared) else { return };
    let (severity, message) = if link > declared {
        let text = "the link is faster than declared: pauses end earlier than they are refreshed, \
                    and more arrives meanwhile than Headroom was computed for";
        (Severity::Error, text)
    } else {
        let text = "the link is slower than declared: what it can't take waits in the NIC, unseen \
                    by ECN and the scheduler";
        (Severity::Warning, text)
    };
    let fix = "declare the link's own speed in the switch file";
    let finding = Finding::new(port.key("speed"), message, fix);
    let finding = finding.numbers(rate_text(declared), rate_text(link));
    found.push(note(port, Id::H08, severity, finding));
}

/// P10.
fn unused(port: &PortView<'_>, host: &HostPort, found: &mut Vec<LintFinding>) {
    let idle = Nanos(host.lossless_idle_ns);
    if port.spec.pfc.enabled.is_empty() || idle < UNUSED {
        return;
    }
    let message = format!(
        "PFC is enabled, but no frame of a lossless class has come in or left for {} h",
        idle.0 / UNUSED.0
    );
    let fix = "look at `show classify`: the traffic may be marked otherwise, or needs no PFC";
    let finding = Finding::new(port.key("pfc.enabled"), message, fix);
    found.push(note(port, Id::P10, Severity::Info, finding));
}

#[cfg(test)]
mod tests;
