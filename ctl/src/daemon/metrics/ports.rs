//! Ports: traffic, drops, losses, classes, links.

use super::family::Families;
use super::snapshot::Snapshot;
use holdfast_core::counters::Traffic;
use holdfast_core::down::DownReason;
use holdfast_core::drop::DropReason;
use holdfast_core::link_errors::LinkError;
use holdfast_shm::counters::PortBlock;

pub(super) fn add(families: &mut Families, snapshot: &Snapshot) {
    traffic(families, snapshot);
    losses(families, snapshot);
    classes(families, snapshot);
    let name = "holdfast_port_peer_deaf";
    families.gauge(name, "Whether the peer goes on sending what PFC told it to pause.");
    for (entry, port) in &snapshot.ports {
        families.state(&[("port", &entry.name)], port.peer_deaf);
    }
    families.gauge("holdfast_port_up", "Whether the port's link is usable.");
    for (entry, port) in &snapshot.ports {
        families.state(&[("port", &entry.name)], port.up);
    }
    let name = "holdfast_port_start_time_seconds";
    families.gauge(name, "When the port's counters began: at the switch's start, or when added.");
    for (entry, _) in &snapshot.ports {
        families.add(&[("port", &entry.name)], snapshot.unix_seconds(entry.since_ns));
    }
    let name = "holdfast_port_down";
    families.gauge(name, "Why the port is down: 1 at one reason, 0 at all of a port that is up.");
    for ((entry, _), link) in snapshot.ports.iter().zip(&snapshot.links) {
        for (reason, holds) in DownReason::ALL.iter().zip(link.down) {
            families.state(&[("port", &entry.name), ("reason", reason.name())], holds);
        }
    }
    // Base units are bytes: promtool insists on it.
    let name = "holdfast_port_speed_bytes_per_second";
    families.gauge(name, "The port's declared speed.");
    for (entry, _) in &snapshot.ports {
        families.add(&[("port", &entry.name)], entry.speed_bits_per_second as f64 / 8.0);
    }
}

fn traffic(families: &mut Families, snapshot: &Snapshot) {
    type Pick = fn(&PortBlock) -> &Traffic;
    let directions: [(&str, Pick); 2] =
        [("received", |port| &port.received), ("transmitted", |port| &port.transmitted)];
    for (direction, pick) in directions {
        let name = format!("holdfast_port_{direction}_frames_total");
        families.counter(&name, &format!("Data frames {direction}, without MAC control."));
        for (entry, port) in &snapshot.ports {
            families.count(&[("port", &entry.name)], pick(port).frames);
        }
        let name = format!("holdfast_port_{direction}_bytes_total");
        families.counter(&name, &format!("Bytes of data frames {direction}, without FCS."));
        for (entry, port) in &snapshot.ports {
            families.count(&[("port", &entry.name)], pick(port).bytes);
        }
    }
}

fn losses(families: &mut Families, snapshot: &Snapshot) {
    let name = "holdfast_port_dropped_frames_total";
    families.counter(name, "Frames dropped, at the port where that was decided.");
    for (entry, port) in &snapshot.ports {
        for reason in DropReason::ALL {
            let labels = [("port", &*entry.name), ("reason", reason.name())];
            families.count(&labels, port.dropped.get(*reason));
        }
    }
    let name = "holdfast_port_receive_overrun_frames_total";
    families.counter(name, "Frames that the kernel lost because the worker was late.");
    for (entry, port) in &snapshot.ports {
        families.count(&[("port", &entry.name)], port.receive_overrun);
    }
    let name = "holdfast_port_errors_total";
    families.counter(name, "Errors of the port's link since it was opened, as its driver counts.");
    for ((entry, _), link) in snapshot.ports.iter().zip(&snapshot.links) {
        for (kind, errors) in LinkError::ALL.iter().zip(link.errors) {
            families.count(&[("port", &entry.name), ("kind", kind.name())], errors);
        }
    }
    let name = "holdfast_lossless_violations_total";
    families.counter(name, "Lossless frames lost. Must stay 0.");
    for (entry, port) in &snapshot.ports {
        families.count(&[("port", &entry.name)], port.lossless_violations);
    }
    let name = "holdfast_port_rx_backlog_frames";
    families.gauge(name, "Frames received that wait for the worker or for room.");
    for (entry, port) in &snapshot.ports {
        families.count(&[("port", &entry.name)], port.rx_backlog);
    }
}

fn classes(families: &mut Families, snapshot: &Snapshot) {
    let name = "holdfast_port_received_class_frames_total";
    families.counter(name, "Frames received by DSCP, and by PCP of the outer tag.");
    for (entry, port) in &snapshot.ports {
        let mut add = |field: &'static str, value: u8, frames: u64| {
            let value = value.to_string();
            families.count(&[("port", &entry.name), ("field", field), ("value", &value)], frames);
        };
        port.received_dscp.iter().for_each(|(dscp, frames)| add("dscp", dscp.number(), *frames));
        port.received_pcp.iter().for_each(|(pcp, frames)| add("pcp", pcp.number(), *frames));
    }
}
