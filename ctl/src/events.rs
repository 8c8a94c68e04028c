//! `holdfast events`: the switch's journal, once or for as long as one looks.

use crate::cli::{EventsArguments, Target};
use crate::connect::{connect, decode};
use crate::print;
use crate::CommandError;
use holdfast_api::message::{Call, Events, EventsReply, JournalEntry};
use serde_json::json;
use std::time::Duration;

/// How often a followed journal is asked for news: nobody's worker is disturbed by it.
const ASK_EVERY: Duration = Duration::from_millis(500);

/// Shows the journal; with `--json` one entry a line.
pub(crate) fn events(target: &Target, arguments: &EventsArguments) -> Result<(), CommandError> {
    let mut client = connect(target)?;
    let severity = arguments.severity.map(Into::into);
    let mut asked = Events { severity, ..Events::default() };
    let mut shown = false;
    loop {
        let value = client.call_raw(Call::Events(asked.clone()))?;
        let reply: EventsReply = decode(&client, "events", value)?;
        if reply.lost > 0 {
            let lost = reply.lost;
            eprintln!("holdfast: {lost} entries were overwritten before they were read");
        }
        let line = if target.json { json_line } else { text_line };
        let lines: String = reply.entries.iter().map(line).collect();
        shown |= !lines.is_empty();
        print(&lines)?;
        // A page that was cut ends before the journal does.
        let all = asked.since == Some(reply.next);
        asked.since = Some(reply.next);
        if !all {
            continue;
        }
        if !arguments.follow {
            if !shown && !target.json {
                eprintln!("holdfast: no such entries in the switch's journal");
            }
            return Ok(());
        }
        std::thread::sleep(ASK_EVERY);
    }
}

fn json_line(entry: &JournalEntry) -> String {
    format!("{}\n", json!(entry))
}

fn text_line(entry: &JournalEntry) -> String {
    let JournalEntry { wall_time, severity, subject, text, .. } = entry;
    format!("{wall_time} {:<5} {subject}: {text}\n", severity.name())
}
