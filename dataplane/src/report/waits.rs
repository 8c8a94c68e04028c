//! Who waits for whom in this switch (SPEC 8): PGs in XOFF, and the queues that hold their frames.

use super::Board;
use holdfast_api::message::{WaitsHold, WaitsPg, WaitsPort, WaitsQueue, WaitsReply};
use holdfast_core::deadlock::{detection_time, PgSuspicion};
use holdfast_core::ids::{
    PerPg, PerPort, PerPriority, PerQueue, PgId, PortId, PrioritySet, QueueId,
};
use holdfast_core::io::PortIo;
use holdfast_core::port::Port;
use holdfast_core::profile::{PortSpec, Profile};
use holdfast_core::units::{Cells, Time};
use holdfast_core::worker::Worker;
use holdfast_wire::MacAddr;

/// What one worker's ports have to do with waiting.
pub(crate) struct WorkerWaits {
    ports: Vec<PortWaits>,
    holds: Vec<Hold>,
}

/// One port at one instant.
struct PortWaits {
    id: PortId,
    mac: MacAddr,
    paused_by: Option<MacAddr>,
    /// Priorities that are paused by PFC; all where the whole port is.
    paused: PrioritySet,
    stands_since: PerQueue<Option<Time>>,
    suspicions: PerPg<PgSuspicion>,
    /// Since when the peer has been told to pause each priority, if it is.
    told_since: PerPriority<Option<Time>>,
}

/// Frames of one PG in XOFF in one queue.
struct Hold {
    account: (PortId, PgId),
    queue: (PortId, QueueId),
    cells: Cells,
    frames: u32,
}

impl WorkerWaits {
    /// Reads a worker between two of its steps. Only where a PG of the switch is in XOFF does it
    /// look through queues.
    pub(crate) fn take<P: PortIo>(worker: &Worker<P>, now: Time) -> Self {
        let (profile, mmu) = (worker.profile(), &worker.shared().mmu);
        let numbers = 0..profile.spec().ports.len() as u8;
        let in_xoff = PerPort::from_fn(|port| match numbers.contains(&port.number()) {
            true => PerPg::from_fn(|pg| mmu.in_xoff(port, pg)),
            false => PerPg::default(),
        });
        let any = in_xoff.iter().any(|(_, pgs)| pgs.0.contains(&true));
        let mut holds = Vec::new();
        for port in worker.ports().iter().filter(|_| any) {
            for queue in QueueId::all() {
                take_queue(port, queue, profile, &in_xoff, &mut holds);
            }
        }
        let ports = worker.ports().iter().map(|port| PortWaits::take(port, now)).collect();
        Self { ports, holds }
    }
}

/// Adds what a queue holds of PGs in XOFF.
fn take_queue<P>(
    port: &Port<P>,
    id: QueueId,
    profile: &Profile,
    in_xoff: &PerPort<PerPg<bool>>,
    holds: &mut Vec<Hold>,
) {
    if port.queue(id).frames() == 0 {
        return;
    }
    let mut held: PerPort<PerPg<(u32, u32)>> = PerPort::default();
    for ((ingress, pg), cells) in port.queue(id).charges(profile.cell()) {
        let entry = &mut held[ingress][pg];
        *entry = (entry.0 + cells.0, entry.1 + 1);
    }
    for (ingress, pgs) in held.iter() {
        let some = pgs.iter().filter(|(pg, (_, frames))| *frames > 0 && in_xoff[ingress][*pg]);
        holds.extend(some.map(|(pg, (cells, frames))| Hold {
            account: (ingress, pg),
            queue: (port.id(), id),
            cells: Cells(*cells),
            frames: *frames,
        }));
    }
}

impl PortWaits {
    fn take<P>(port: &Port<P>, now: Time) -> Self {
        let (sender, receiver) = (port.pause_sender(), port.pause_receiver());
        let paused = match receiver.is_link_paused(now) {
            true => PrioritySet(u8::MAX),
            false => receiver.paused_priorities(now),
        };
        Self {
            id: port.id(),
            mac: port.mac(),
            paused_by: receiver.source(),
            paused,
            stands_since: PerQueue::from_fn(|queue| port.stands_since(queue)),
            suspicions: PerPg::from_fn(|pg| *port.suspicion(pg)),
            told_since: PerPriority::from_fn(|priority| {
                sender.paused().contains(priority).then(|| sender.told_since(priority))
            }),
        }
    }
}

/// The answer to `show_waits`, of one port's PGs or of all.
pub(crate) fn waits_reply(
    board: &Board,
    workers: &[WorkerWaits],
    only: Option<PortId>,
    now: Time,
) -> WaitsReply {
    let holds: Vec<&Hold> = workers.iter().flat_map(|worker| &worker.holds).collect();
    let mut ports: Vec<&PortWaits> = workers.iter().flat_map(|worker| &worker.ports).collect();
    ports.sort_by_key(|port| port.id);
    let mut reply = WaitsReply {
        switch: board.name.clone(),
        pid: std::process::id(),
        now_ns: now.0,
        ports: Vec::new(),
        pgs: Vec::new(),
        queues: Vec::new(),
    };
    for port in ports {
        let mac = port.mac.to_string();
        reply.ports.push(WaitsPort { port: board.port_name(port.id), mac });
        let Some(spec) = board.profile.port(port.id) else { continue };
        if only.is_none_or(|only| only == port.id) {
            let waiting = PgId::all().filter(|pg| board.shared.mmu.in_xoff(port.id, *pg));
            reply.pgs.extend(waiting.map(|pg| waiting_pg(board, port, spec, pg, &holds, now)));
        }
        let shown = |hold: &&&Hold| only.is_none_or(|only| only == hold.account.0);
        for queue in QueueId::all() {
            if holds.iter().filter(shown).any(|hold| hold.queue == (port.id, queue)) {
                reply.queues.push(holding_queue(board, port, spec, queue, now));
            }
        }
    }
    reply
}

fn waiting_pg(
    board: &Board,
    port: &PortWaits,
    spec: &PortSpec,
    pg: PgId,
    holds: &[&Hold],
    now: Time,
) -> WaitsPg {
    let priorities = spec.pgs[pg].priorities.and(spec.pfc.enabled);
    let told = priorities.iter().filter_map(|priority| port.told_since[priority]).min();
    let mut held: Vec<_> = holds.iter().filter(|hold| hold.account == (port.id, pg)).collect();
    held.sort_by_key(|hold| hold.queue);
    let waits_for = held.into_iter().map(|hold| WaitsHold {
        port: board.port_name(hold.queue.0),
        queue: hold.queue.1.number(),
        cells: hold.cells.0,
        frames: hold.frames,
    });
    WaitsPg {
        port: board.port_name(port.id),
        pg: pg.number(),
        priorities: numbers(priorities),
        cells: board.shared.mmu.held(port.id, pg).0,
        paused_ns: told.map_or(0, |since| now.since(since).0),
        suspected_at_ns: port.suspicions[pg].since().map(|at| at.0),
        waits_for: waits_for.collect(),
    }
}

fn holding_queue(
    board: &Board,
    port: &PortWaits,
    spec: &PortSpec,
    id: QueueId,
    now: Time,
) -> WaitsQueue {
    let stops = |priority: &_| spec.maps.priority_to_queues[*priority].contains(id);
    let stopping = port.paused.iter().filter(stops).fold(PrioritySet::EMPTY, PrioritySet::with);
    WaitsQueue {
        port: board.port_name(port.id),
        queue: id.number(),
        paused: !stopping.is_empty(),
        priorities: numbers(stopping),
        stands_ns: port.stands_since[id].map_or(0, |since| now.since(since).0),
        detection_ns: detection_time(spec).0,
        paused_by: port.paused_by.map(|mac| mac.to_string()),
    }
}

fn numbers(priorities: PrioritySet) -> Vec<u8> {
    priorities.iter().map(|priority| priority.number()).collect()
}
