//! `holdfast deadlock`: asks several switches who waits for whom and follows that from one to the
//! next (SPEC 8). [`ask`] has their answers, [`graph`] joins them by the addresses of PFC frames,
//! [`cycles`] finds what goes round, [`report`] says what of that is a deadlock.

mod ask;
mod cycles;
mod graph;
mod report;
mod text;

#[cfg(test)]
mod tests;

use crate::cli::deadlock::DeadlockArguments;
use crate::cli::Target;
use crate::{print, CommandError};
use holdfast_api::message::WaitsReply;
use report::Report;
use serde_json::json;

/// Looks for deadlocks over these switches: exit code 1 if there is one, else 3 if a switch didn't
/// answer.
pub(crate) fn deadlock(target: &Target, arguments: &DeadlockArguments) -> Result<(), CommandError> {
    let sockets = ask::sockets(target, &arguments.switches)?;
    let (mut asked, unasked) = ask::ask_all(&sockets);
    let replies: Vec<WaitsReply> = asked.iter().map(|switch| switch.reply.clone()).collect();
    let first: Vec<&WaitsReply> = replies.iter().collect();
    let again = match Report::may_be_deadlock(&first) {
        true => asked.iter_mut().map(ask::Asked::again).collect(),
        false => Vec::new(),
    };
    let report = Report::new(&first, &again, unasked);
    let text = if target.json { format!("{}\n", json!(report)) } else { report.text() };
    print(&text)?;
    if let Some(first) = report.deadlocks.first() {
        let count = report.deadlocks.len();
        let more = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
        return Err(CommandError::Found(format!("deadlock: {}{more}", first.text)));
    }
    if report.unasked.is_empty() {
        return Ok(());
    }
    let missing: Vec<&str> = report.unasked.iter().map(|switch| switch.why.as_str()).collect();
    Err(CommandError::NotAsked(missing.join("; ")))
}
