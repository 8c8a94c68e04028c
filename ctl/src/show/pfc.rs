//! PFC per priority, and how fast XOFF gets out.

use crate::layout::{list, table, time};
use holdfast_api::message::{Histogram, PfcDirection, PfcPort, PfcReply, WatchdogReply};

pub(super) fn pfc(reply: &PfcReply) -> String {
    let mut out = String::new();
    for port in &reply.ports {
        out.push_str(&port_text(port));
    }
    out.push_str(&histogram(&reply.xoff_reaction));
    out
}

pub(super) fn watchdog(reply: &WatchdogReply) -> String {
    if reply.queues.is_empty() {
        return "No watchdog: the profile has no [watchdog] section, or no PFC.\n".to_owned();
    }
    let headings = [
        "port",
        "queue",
        "state",
        "for",
        "detects after",
        "restores after",
        "does",
        "storms",
        "restored",
        "dropped",
    ];
    let mut rows = table(headings, 3);
    for queue in &reply.queues {
        let (state, span) = match queue.stormed {
            true => ("STORM", time(queue.stormed_ns)),
            false => ("calm", "-".to_owned()),
        };
        rows.add_row([
            queue.port.clone(),
            queue.queue.to_string(),
            state.to_owned(),
            span,
            time(queue.watchdog.detection_ns),
            time(queue.restoration_ns),
            queue.watchdog.action.clone(),
            queue.detected.to_string(),
            queue.restored.to_string(),
            queue.dropped_frames.to_string(),
        ]);
    }
    format!("{rows}\n")
}

fn port_text(port: &PfcPort) -> String {
    let mut rows = table(
        ["priority", "way", "state", "why / queues", "XOFF", "refresh", "XON", "paused", "left"],
        4,
    );
    let used = |way: &PfcDirection| way.xoff + way.xon + way.refresh > 0;
    for priority in &port.priorities {
        let heard = used(&priority.received) || priority.not_enabled_frames > 0;
        if !priority.enabled && !heard && !used(&priority.transmitted) {
            continue;
        }
        let causes = priority.causes.join(", ");
        let queues = format!("queue {}", list(&priority.queues));
        let ways =
            [("sent", &priority.transmitted, causes), ("received", &priority.received, queues)];
        for (way, counts, why) in ways {
            rows.add_row([
                priority.priority.to_string(),
                way.to_owned(),
                state(priority.enabled, counts.paused).to_owned(),
                why,
                counts.xoff.to_string(),
                counts.refresh.to_string(),
                counts.xon.to_string(),
                time(counts.paused_ns),
                time(counts.remaining_ns),
            ]);
        }
        if priority.not_enabled_frames > 0 {
            let frames = priority.not_enabled_frames.to_string();
            let number = priority.priority.to_string();
            let why = "PFC is not enabled: not obeyed";
            rows.add_row([&number, "received", "ignored", why, &frames, "-", "-", "-", "-"]);
        }
    }
    let invalid: Vec<String> = (port.invalid.iter())
        .filter(|(_, frames)| **frames > 0)
        .map(|(kind, frames)| format!("{kind} {frames}"))
        .collect();
    let invalid = if invalid.is_empty() { "none".to_owned() } else { invalid.join(", ") };
    format!(
        "Port {}: pauses of {} quanta ({}); invalid frames: {invalid}; 802.3x pauses obeyed: {}\n\
         {rows}\n\n",
        port.port,
        port.pause_quanta,
        time(port.pause_ns),
        port.link_pause_frames
    )
}

const fn state(enabled: bool, paused: bool) -> &'static str {
    match (enabled, paused) {
        (_, true) => "paused",
        (true, false) => "open",
        (false, false) => "off",
    }
}

fn histogram(histogram: &Histogram) -> String {
    if histogram.count == 0 {
        return "XOFF reaction: no XOFF yet\n".to_owned();
    }
    let mean = histogram.sum_ns / histogram.count;
    let mut out = format!(
        "XOFF reaction, from the charge to the kick: {} times, mean {}, longest {}\n",
        histogram.count,
        time(mean),
        time(histogram.max_ns)
    );
    for bucket in histogram.buckets.iter().filter(|bucket| bucket.count > 0) {
        let bound =
            bucket.up_to_ns.map_or_else(|| "more".to_owned(), |ns| format!("up to {}", time(ns)));
        out.push_str(&format!("  {bound:>14}: {}\n", bucket.count));
    }
    out
}
