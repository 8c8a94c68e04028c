//! The journal (SPEC 11): the last [`ENTRIES`] things that an operator wants to be told
//! afterwards. Only the control thread writes and reads it, so workers neither wait for it nor are
//! asked.

use holdfast_api::message::{
    ErrorBody, ErrorCode, EventsReply, JournalEntry, Occurrence, Severity,
};
use holdfast_core::units::Time;
use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

/// Entries that are kept; older ones are overwritten, and whoever reads is told how many.
pub(super) const ENTRIES: usize = 1024;
/// Entries of one answer at most. The longest entry there can be has about 12 KiB as JSON, so that
/// so many stay below the MiB of a line.
pub(super) const PAGE: u32 = 64;

/// One instant by both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// By the clock of `Worker::step`.
    pub(crate) time: Time,
    /// By the wall clock.
    pub(crate) wall: SystemTime,
}

impl Moment {
    /// Now, where the switch's clock shows `time`.
    pub(crate) fn now(time: Time) -> Self {
        Self { time, wall: SystemTime::now() }
    }

    /// The earlier instant at which the switch's clock showed `time`.
    pub(super) fn back_to(self, time: Time) -> Self {
        let ago = Duration::from_nanos(self.time.since(time).0);
        Self { time, wall: self.wall.checked_sub(ago).unwrap_or(self.wall) }
    }

    /// The wall clock's time as RFC 3339 writes it, UTC, ns.
    fn rfc_3339(self) -> String {
        let known = jiff::Timestamp::try_from(self.wall);
        known.map_or_else(|_| String::new(), |stamp| format!("{stamp:.9}"))
    }
}

/// The ring of entries.
#[derive(Debug)]
pub(super) struct Journal {
    entries: VecDeque<JournalEntry>,
    /// The number of the next entry.
    next: u64,
}

impl Journal {
    pub(super) fn new() -> Self {
        Self { entries: VecDeque::with_capacity(ENTRIES), next: 1 }
    }

    /// Writes down what happened.
    pub(super) fn record(&mut self, at: Moment, what: Occurrence) {
        if self.entries.len() == ENTRIES {
            self.entries.pop_front();
        }
        self.entries.push_back(JournalEntry {
            seq: self.next,
            time_ns: at.time.0,
            wall_time: at.rfc_3339(),
            severity: what.severity(),
            subject: what.subject(),
            text: what.text(),
            what,
        });
        self.next += 1;
    }

    /// At most `max` entries from the cursor on that matter at least so much.
    ///
    /// # Errors
    /// `bad_argument` for a cursor that this journal has not given.
    pub(super) fn page(
        &self,
        since: Option<u64>,
        max: Option<u32>,
        least: Option<Severity>,
    ) -> Result<EventsReply, ErrorBody> {
        if since.is_some_and(|since| since > self.next) {
            let body = ErrorBody::new(ErrorCode::BadArgument, "the cursor isn't of this switch");
            let fix = "give `next` of the answer before, or leave `since` out";
            let since = since.unwrap_or_default();
            return Err(body.at("since").value(since).limit(self.next).fix(fix));
        }
        let oldest = self.next - self.entries.len() as u64;
        let since = since.map_or(oldest, |since| since.max(1));
        let max = max.unwrap_or(PAGE).min(PAGE) as usize;
        let mut reply = EventsReply {
            entries: Vec::new(),
            next: since.max(oldest),
            lost: oldest.saturating_sub(since),
        };
        for entry in self.entries.iter().skip((reply.next - oldest) as usize) {
            if reply.entries.len() == max {
                break;
            }
            if least.is_none_or(|least| entry.severity >= least) {
                reply.entries.push(entry.clone());
            }
            reply.next = entry.seq + 1;
        }
        Ok(reply)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn up(port: u64) -> Occurrence {
        Occurrence::PortUp { port: format!("p{port}") }
    }

    fn lost(port: u64) -> Occurrence {
        Occurrence::LosslessViolation { port: format!("p{port}"), frames: 1, total: 1 }
    }

    fn at(ns: u64) -> Moment {
        Moment { time: Time(ns), wall: SystemTime::UNIX_EPOCH + Duration::from_nanos(ns) }
    }

    fn numbers(reply: &EventsReply) -> Vec<u64> {
        reply.entries.iter().map(|entry| entry.seq).collect()
    }

    #[test]
    fn entries_come_by_cursor_each_once_and_by_severity() {
        let mut journal = Journal::new();
        assert_eq!(journal.page(None, None, None).unwrap().next, 1);
        (1..=5).for_each(|n| journal.record(at(n), if n % 2 == 0 { lost(n) } else { up(n) }));
        let first = journal.page(None, Some(2), None).unwrap();
        assert_eq!((numbers(&first), first.next, first.lost), (vec![1, 2], 3, 0));
        assert_eq!(first.entries[1].wall_time, "1970-01-01T00:00:00.000000002Z");
        let rest = journal.page(Some(first.next), None, None).unwrap();
        assert_eq!((numbers(&rest), rest.next), (vec![3, 4, 5], 6));
        let errors = journal.page(None, None, Some(Severity::Error)).unwrap();
        assert_eq!((numbers(&errors), errors.next), (vec![2, 4], 6));
        // A page of one kind ends behind its last entry, not behind those that it left out.
        let one = journal.page(None, Some(1), Some(Severity::Warn)).unwrap();
        assert_eq!((numbers(&one), one.next), (vec![2], 3));
        assert_eq!(numbers(&journal.page(Some(0), None, None).unwrap()), [1, 2, 3, 4, 5]);
        assert!(numbers(&journal.page(Some(6), None, None).unwrap()).is_empty());
        let error = journal.page(Some(7), None, None).unwrap_err();
        assert_eq!((error.place.as_deref(), error.value.as_deref()), (Some("since"), Some("7")));
    }

    #[test]
    fn a_full_ring_keeps_the_newest_and_says_what_is_lost() {
        let mut journal = Journal::new();
        let all = ENTRIES as u64 + 10;
        (1..=all).for_each(|n| journal.record(at(n), up(n)));
        let reply = journal.page(Some(3), Some(1), None).unwrap();
        assert_eq!((numbers(&reply), reply.next, reply.lost), (vec![11], 12, 8));
        let reply = journal.page(None, None, None).unwrap();
        assert_eq!((reply.entries.len(), reply.lost), (PAGE as usize, 0));
        let reply = journal.page(Some(all), None, None).unwrap();
        assert_eq!((numbers(&reply), reply.lost), (vec![all], 0));
    }
}
