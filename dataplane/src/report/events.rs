//! Events of all workers in the order they happened (SPEC 3.8).
//!
//! Each worker writes its own bounded ring, and a cursor has one number a worker. A page is cut at
//! the instant before the workers were asked: up to there every ring is complete, so what comes in
//! a later page happened later.

use super::Board;
use holdfast_api::message::{Edge as ApiEdge, Event as ApiEvent, EventKind as ApiKind, TraceReply};
use holdfast_core::ids::{PortId, PrioritySet};
use holdfast_core::mmu::{Edge, EdgeKind};
use holdfast_core::pfc::PauseCause;
use holdfast_core::trace::{Event, EventKind, Trace, TraceMask};
use holdfast_core::units::Time;

/// Events of a page at most.
pub(crate) const MAX_EVENTS: u32 = 4096;
/// Bytes of events in a page at most: the rest of its line has room beside them.
const MAX_BYTES: usize = 900 << 10;
/// Events that a worker looks at for one page: it does so between two steps, and frames wait.
const MAX_LOOK: usize = 16 * MAX_EVENTS as usize;

/// What a client wants to see.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventQuery {
    /// By worker, the first number of interest; `None` for the oldest that is kept.
    pub(crate) since: Option<Vec<u64>>,
    /// At most so many events; [`MAX_EVENTS`] where absent or larger.
    pub(crate) max: Option<u32>,
    /// Only these kinds; all where absent.
    pub(crate) kinds: Option<Vec<ApiKind>>,
    /// Only this port.
    pub(crate) port: Option<PortId>,
}

impl EventQuery {
    fn max(&self) -> usize {
        self.max.unwrap_or(MAX_EVENTS).clamp(1, MAX_EVENTS) as usize
    }

    fn wants(&self, event: &Event) -> bool {
        self.port.is_none_or(|port| port == event.port)
            && self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&kind_of(&event.kind)))
    }
}

/// What one worker's ring has for a query.
#[derive(Clone, Debug)]
pub(crate) struct RingEvents {
    /// The events with their numbers in the ring.
    events: Vec<(u64, Event)>,
    /// The number up to which it looked, that one not included.
    looked_to: u64,
    /// Events after the cursor that were overwritten.
    lost: u64,
    /// When the first event happened that it didn't look at, [`Time::NEVER`] if it saw them all.
    beyond: Time,
    mask: TraceMask,
}

impl RingEvents {
    /// Looks through the ring of worker number `worker` for events that happened up to `cut`.
    pub(crate) fn take(trace: &Trace, worker: usize, query: &EventQuery, cut: Time) -> Self {
        let since = query.since.as_ref().and_then(|since| since.get(worker)).copied();
        let (first, events) = trace.since(since.unwrap_or_default());
        let mut found = Self {
            events: Vec::new(),
            looked_to: first,
            lost: since.map_or(0, |since| first.saturating_sub(since)),
            beyond: Time::NEVER,
            mask: trace.mask(),
        };
        let most = query.max();
        for (looked, event) in events.enumerate() {
            if event.time > cut || looked == MAX_LOOK || found.events.len() == most {
                found.beyond = event.time;
                break;
            }
            if query.wants(event) {
                found.events.push((found.looked_to, *event));
            }
            found.looked_to += 1;
        }
        found
    }
}

/// The answer to `trace`: what the rings of all workers, in the order of their numbers, have.
pub(crate) fn trace_reply(board: &Board, query: &EventQuery, rings: &[RingEvents]) -> TraceReply {
    // Nothing later than what some worker didn't look at, or the order would break.
    let end = rings.iter().map(|ring| ring.beyond).min().unwrap_or(Time::NEVER);
    let mut merged: Vec<(usize, u64, Event)> = Vec::new();
    for (worker, ring) in rings.iter().enumerate() {
        let early = ring.events.iter().filter(|(_, event)| event.time <= end);
        merged.extend(early.map(|(number, event)| (worker, *number, *event)));
    }
    // Stable: what one worker wrote at one instant stays in its order.
    merged.sort_by_key(|(_, _, event)| event.time);
    let mut next: Vec<u64> = rings.iter().map(|ring| first_left(ring, end)).collect();
    let mut events = Vec::new();
    let mut bytes = 0;
    let mut left = merged.into_iter();
    for (worker, number, event) in left.by_ref() {
        let event = api_event(board, &event);
        bytes += serde_json::to_vec(&event).map_or(0, |json| json.len() + 1);
        if events.len() == query.max() || bytes > MAX_BYTES {
            step_back(&mut next, worker, number);
            break;
        }
        events.push(event);
    }
    left.for_each(|(worker, number, _)| step_back(&mut next, worker, number));
    let mask = rings.iter().fold(TraceMask::EDGES, |mask, ring| mask.with(ring.mask));
    TraceReply {
        events,
        next,
        lost: rings.iter().map(|ring| ring.lost).sum(),
        recording: kinds_of(mask),
    }
}

/// The cursor of one worker if all of its events up to `end` go into the page.
fn first_left(ring: &RingEvents, end: Time) -> u64 {
    let later = ring.events.iter().find(|(_, event)| event.time > end);
    later.map_or(ring.looked_to, |(number, _)| *number)
}

fn step_back(next: &mut [u64], worker: usize, number: u64) {
    if let Some(next) = next.get_mut(worker) {
        *next = number.min(*next);
    }
}

const fn kind_of(kind: &EventKind) -> ApiKind {
    match kind {
        EventKind::Edge(_) => ApiKind::Edge,
        EventKind::RxBacklog(..) => ApiKind::RxBacklog,
        EventKind::Storm(..) => ApiKind::Storm,
        EventKind::Deadlock { .. } => ApiKind::Deadlock,
        EventKind::PfcOut { .. } => ApiKind::PfcOut,
        EventKind::PfcIn { .. } => ApiKind::PfcIn,
        EventKind::Mark { .. } => ApiKind::Mark,
        EventKind::Drop { .. } => ApiKind::Drop,
    }
}

fn numbers(priorities: PrioritySet) -> Vec<u8> {
    priorities.iter().map(|priority| priority.number()).collect()
}

fn api_event(board: &Board, event: &Event) -> ApiEvent {
    let time_ns = event.time.0;
    let port = board.port_name(event.port);
    match event.kind {
        EventKind::Edge(edge) => api_edge(time_ns, port, &edge),
        EventKind::RxBacklog(priorities, paused) => {
            ApiEvent::RxBacklog { time_ns, port, priorities: numbers(priorities), paused }
        }
        EventKind::Storm(queues, begins) => {
            let queues = queues.iter().map(|queue| queue.number()).collect();
            ApiEvent::Storm { time_ns, port, queues, begins }
        }
        EventKind::Deadlock { pg, ports, begins } => {
            let waits_for = ports.iter().map(|port| board.port_name(port)).collect();
            ApiEvent::Deadlock { time_ns, port, pg: pg.number(), waits_for, begins }
        }
        EventKind::PfcOut { enable, quanta } => {
            ApiEvent::PfcOut { time_ns, port, priorities: numbers(enable), quanta }
        }
        EventKind::PfcIn { enable, quanta } => {
            ApiEvent::PfcIn { time_ns, port, priorities: numbers(enable), quanta }
        }
        EventKind::Mark { queue, depth, marked } => {
            ApiEvent::Mark { time_ns, port, queue: queue.number(), depth: depth.0, marked }
        }
        EventKind::Drop { reason, pg, queue, len } => ApiEvent::Drop {
            time_ns,
            port,
            reason: reason.name().to_owned(),
            pg: pg.map(|pg| pg.number()),
            queue: queue.map(|queue| queue.number()),
            bytes: u32::from(len.0),
        },
    }
}

fn api_edge(time_ns: u64, port: String, edge: &Edge) -> ApiEvent {
    ApiEvent::Edge {
        time_ns,
        port,
        pg: edge.pg.number(),
        edge: match edge.kind {
            EdgeKind::Xoff => ApiEdge::Xoff,
            EdgeKind::Xon => ApiEdge::Xon,
        },
        cause: PauseCause::Mmu.name().to_owned(),
        guaranteed: edge.guaranteed.0,
        service: edge.service.0,
        headroom: edge.headroom.0,
        limit: edge.limit.0,
        resume: edge.resume.0,
    }
}

/// The kinds that are always recorded.
const ALWAYS: [ApiKind; 4] = [ApiKind::Edge, ApiKind::RxBacklog, ApiKind::Storm, ApiKind::Deadlock];

/// The kinds that a mask records.
fn kinds_of(mask: TraceMask) -> Vec<ApiKind> {
    let masks = [
        (TraceMask::EDGES, &ALWAYS[..]),
        (TraceMask::PFC, &[ApiKind::PfcOut, ApiKind::PfcIn]),
        (TraceMask::MARKS, &[ApiKind::Mark]),
        (TraceMask::DROPS, &[ApiKind::Drop]),
    ];
    masks.iter().filter(|(bit, _)| mask.has(*bit)).flat_map(|(_, kinds)| *kinds).copied().collect()
}

/// The mask that records these kinds; edges always.
pub(crate) fn mask_of(kinds: &[ApiKind]) -> TraceMask {
    kinds.iter().fold(TraceMask::EDGES, |mask, kind| match kind {
        ApiKind::Edge | ApiKind::RxBacklog | ApiKind::Storm | ApiKind::Deadlock => mask,
        ApiKind::PfcOut | ApiKind::PfcIn => mask.with(TraceMask::PFC),
        ApiKind::Mark => mask.with(TraceMask::MARKS),
        ApiKind::Drop => mask.with(TraceMask::DROPS),
    })
}

#[cfg(test)]
mod tests;
