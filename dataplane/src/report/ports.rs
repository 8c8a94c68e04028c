//! Ports, their links and losses, and the worker threads that own them (SPEC 4.3, 9).

use super::{PortFacts, PortReading, View, WorkerReading};
use holdfast_api::message::{drop_counts, Peer, PortState, PortStatus, PortsReply, WorkerStatus};
use holdfast_core::pfc;
use holdfast_core::profile::PortSpec;
use holdfast_core::units::{FrameLen, Nanos};
use std::sync::atomic::{AtomicU64, Ordering};

/// The answer to `show_ports`.
pub(crate) fn ports_reply(view: View<'_>) -> PortsReply {
    let known = |(port, spec): (&PortReading, &PortSpec)| {
        let facts = view.board.facts(port.id.index())?;
        Some(port_status(view, port, spec, facts))
    };
    PortsReply {
        ports: view.ports().into_iter().filter_map(known).collect(),
        workers: view.workers.iter().map(|worker| worker_status(view, worker)).collect(),
    }
}

fn port_status(
    view: View<'_>,
    port: &PortReading,
    spec: &PortSpec,
    facts: &PortFacts,
) -> PortStatus {
    let topology = &view.board.topology;
    let wire = topology.place(port.id).and_then(|place| place.wire_peer);
    let (counters, rings) = (&port.counters, &port.rings);
    let mark = spec.pfc.rx_backlog_mark;
    PortStatus {
        port: facts.name.clone(),
        state: match (port.up, port.held) {
            (false, _) => PortState::Down,
            (true, true) => PortState::Held,
            (true, false) => PortState::Up,
        },
        down_reason: (!port.up).then(|| down_text(view, port)),
        netns: facts.netns.clone(),
        ifname: facts.ifname.clone(),
        speed_bits_per_second: spec.speed.bits_per_second(),
        mtu: spec.mtu,
        mac: port.mac.to_string(),
        xdp_mode: facts.xdp_mode,
        zero_copy: facts.zero_copy,
        queues: facts.queues,
        worker: topology.owner(port.id).unwrap_or_default().index() as u8,
        wire: wire.map(|peer| view.board.port_name(peer)),
        peer: match port.peer {
            pfc::Peer::Unknown => Peer::Unknown,
            pfc::Peer::Obeys => Peer::Obeys,
            pfc::Peer::Deaf => Peer::Deaf,
        },
        notes: facts.notes.clone(),
        rx_frames: counters.received.frames,
        rx_bytes: counters.received.bytes,
        tx_frames: counters.transmitted.frames,
        tx_bytes: counters.transmitted.bytes,
        drops: drop_counts(&counters.dropped),
        flooded: counters.flooded,
        handovers: counters.handed_over,
        receive_overrun: port.counters.receive_overrun,
        lossless_violations: counters.lossless_violations,
        rx_backlog: u64::from(rings.backlog) + u64::from(port.late),
        rx_ring: facts.rx_ring,
        rx_backlog_mark: mark,
        stall_survived_ns: stall_survived(spec, facts.rx_ring, view.board.smallest_lossless_frame)
            .0,
        tx_in_ring_bytes: port.in_ring_bytes,
    }
}

/// Why a port is down, as far as is known: what took it down is found out by another thread.
fn down_text(view: View<'_>, port: &PortReading) -> String {
    let down = view.board.downs.of(port.id.index()).map(|down| down.text());
    let seen = || port.rings.down_reason.clone().unwrap_or_else(|| "it isn't open".to_owned());
    down.unwrap_or_else(seen)
}

/// How long a worker may be late without loss: (ring - mark) frames of the smallest lossless
/// length at the declared speed (SPEC 4.3).
fn stall_survived(spec: &PortSpec, ring: u32, smallest: FrameLen) -> Nanos {
    let frames = ring.saturating_sub(spec.pfc.rx_backlog_mark);
    let bits = u64::from(frames) * u64::from(smallest.on_wire().0) * 8;
    // The last frame of that many is still on its way until its end: rounding down is safe.
    let rate = u128::from(spec.speed.bits_per_second());
    Nanos((u128::from(bits) * 1_000_000_000 / rate) as u64)
}

fn worker_status(view: View<'_>, worker: &WorkerReading) -> WorkerStatus {
    let topology = &view.board.topology;
    let owned = topology.ports().filter(|(_, place)| place.owner == worker.id);
    let thread = view.board.threads.get(worker.id.index());
    let stat = |pick: fn(&crate::worker_thread::WorkerStats) -> &AtomicU64| {
        thread.map_or(0, |(stats, _)| pick(stats).load(Ordering::Relaxed))
    };
    let busy_ns = stat(|stats| &stats.busy_ns);
    WorkerStatus {
        worker: worker.id.index() as u8,
        cpu: thread.and_then(|(_, cpu)| *cpu),
        ports: owned.map(|(port, _)| view.board.port_name(port)).collect(),
        steps: stat(|stats| &stats.steps),
        busy_steps: stat(|stats| &stats.busy_steps),
        busy_ratio: (busy_ns as f64 / view.uptime().0.max(1) as f64).min(1.0),
        longest_step_ns: stat(|stats| &stats.longest_step_ns),
        longest_gap_ns: stat(|stats| &stats.longest_gap_ns),
        handovers: worker.ports.iter().map(|port| port.counters.handed_over).sum(),
        generation: worker.generation,
    }
}

#[cfg(test)]
mod tests {
    use super::super::lab;
    use super::*;

    #[test]
    fn the_stall_is_counted_in_smallest_lossless_frames() {
        let spec = lab::port_spec();
        // 10G: (2048 - 256) frames of 1086 + 24 bytes.
        let stall = stall_survived(&spec, 2048, FrameLen(1086));
        assert_eq!(stall, Nanos(1792 * 1110 * 8 / 10));
        assert_eq!(stall_survived(&spec, 100, FrameLen(1086)), Nanos(0), "the mark is the ring");
    }
}
