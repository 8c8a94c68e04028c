//! `holdfast trace`: events, once or until interrupted.

use crate::cli::{Target, TraceArguments};
use crate::connect::{connect, decode};
use crate::layout::{list, or_dash};
use crate::{print, CommandError};
use holdfast_api::message::{Call, Edge, Event, EventKind, Trace, TraceReply};
use std::time::Duration;

/// How often a followed trace asks.
const ASK_EVERY: Duration = Duration::from_millis(200);
/// Events asked for at once.
const PAGE: u32 = 4096;

/// `holdfast trace …`
pub(crate) fn trace(target: &Target, arguments: &TraceArguments) -> Result<(), CommandError> {
    let mut client = connect(target)?;
    let (kinds, record) = kinds(arguments);
    let mut asked = Trace {
        max: Some(PAGE),
        kinds: Some(kinds),
        record: (!record.is_empty()).then_some(record),
        port: arguments.port.clone(),
        since: None,
    };
    let mut labelled = false;
    loop {
        let value = client.call_raw(Call::Trace(asked.clone()))?;
        let text = target.json.then(|| format!("{value}\n"));
        let reply: TraceReply = decode(&client, "trace", value)?;
        let last_page = reply.events.len() < PAGE as usize;
        let news = !reply.events.is_empty() || reply.lost > 0;
        if news && !target.json && !labelled {
            eprintln!("holdfast: times are seconds of CLOCK_MONOTONIC, counted from the boot");
            labelled = true;
        }
        if news || (target.json && !arguments.follow) {
            print(&text.unwrap_or_else(|| lines(&reply)))?;
        }
        if !arguments.follow && (target.json || last_page) {
            if !labelled && !target.json {
                eprintln!("holdfast: {}", nothing_yet(arguments));
            }
            return Ok(());
        }
        if last_page {
            std::thread::sleep(ASK_EVERY);
        }
        asked.since = Some(reply.next);
        asked.record = None;
    }
}

/// What is said where a trace is empty.
fn nothing_yet(arguments: &TraceArguments) -> &'static str {
    if arguments.pfc || arguments.marks || arguments.drops {
        "no such events yet; they are recorded from now on: ask again, or add --follow"
    } else {
        "no edges yet: no PG has reached XOFF"
    }
}

/// What to show, and what to record that isn't always.
fn kinds(arguments: &TraceArguments) -> (Vec<EventKind>, Vec<EventKind>) {
    let mut record = Vec::new();
    if arguments.pfc {
        record.extend([EventKind::PfcOut, EventKind::PfcIn]);
    }
    if arguments.marks {
        record.push(EventKind::Mark);
    }
    if arguments.drops {
        record.push(EventKind::Drop);
    }
    let mut kinds = record.clone();
    if arguments.edges || kinds.is_empty() {
        let edges = [EventKind::Edge, EventKind::RxBacklog, EventKind::Storm, EventKind::Deadlock];
        kinds.extend(edges);
    }
    (kinds, record)
}

fn lines(reply: &TraceReply) -> String {
    let mut out = String::new();
    if reply.lost > 0 {
        out.push_str(&format!("({} events were overwritten before they were read)\n", reply.lost));
    }
    for event in &reply.events {
        out.push_str(&line(event));
        out.push('\n');
    }
    out
}

fn stamp(time_ns: u64, port: &str) -> String {
    format!("{:>12}.{:09} {port}", time_ns / 1_000_000_000, time_ns % 1_000_000_000)
}

fn line(event: &Event) -> String {
    match event {
        Event::Edge {
            time_ns,
            port,
            pg,
            edge,
            cause,
            guaranteed,
            service,
            headroom,
            limit,
            resume,
        } => {
            let way = match edge {
                Edge::Xoff => "XOFF",
                Edge::Xon => "XON ",
            };
            format!(
                "{} {way} pg {pg} by {cause}: guaranteed {guaranteed} service {service} headroom \
                 {headroom}, limit {limit}, resume at {resume} cells",
                stamp(*time_ns, port)
            )
        }
        Event::RxBacklog { time_ns, port, priorities, paused } => {
            let what = if *paused { "begins" } else { "ends" };
            let stamp = stamp(*time_ns, port);
            format!("{stamp} pause by RX backlog {what}, priorities {}", list(priorities))
        }
        Event::Storm { time_ns, port, queues, begins } => {
            let what = if *begins { "begins" } else { "is over" };
            format!("{} storm {what}, queues {}", stamp(*time_ns, port), list(queues))
        }
        Event::Deadlock { time_ns, port, pg, waits_for, begins } => {
            let what = if *begins { "suspected" } else { "resolved" };
            let stamp = stamp(*time_ns, port);
            format!("{stamp} deadlock {what}, pg {pg}: frames held at {}", waits_for.join(", "))
        }
        Event::PfcOut { time_ns, port, priorities, quanta } => {
            format!("{} PFC out {}", stamp(*time_ns, port), times(priorities, quanta))
        }
        Event::PfcIn { time_ns, port, priorities, quanta } => {
            format!("{} PFC in  {}", stamp(*time_ns, port), times(priorities, quanta))
        }
        Event::Mark { time_ns, port, queue, depth, marked } => {
            let what = if *marked { "marked CE" } else { "not markable" };
            format!("{} {what}, queue {queue} at depth {depth} cells", stamp(*time_ns, port))
        }
        Event::Drop { time_ns, port, reason, pg, queue, bytes } => {
            let (pg, queue) = (or_dash(*pg), or_dash(*queue));
            let stamp = stamp(*time_ns, port);
            format!("{stamp} dropped: {reason}, pg {pg}, queue {queue}, {bytes} bytes")
        }
    }
}

fn times(priorities: &[u8], quanta: &[u16; 8]) -> String {
    let each = priorities.iter().map(|priority| {
        let time = quanta.get(usize::from(*priority)).copied().unwrap_or_default();
        format!("priority {priority}: {time} quanta")
    });
    each.collect::<Vec<_>>().join(", ")
}
