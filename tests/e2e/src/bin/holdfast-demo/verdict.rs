//! What an outcome must be, and what is to be said if it isn't.

use crate::outcome::{Outcome, BUSY_BPS};
use std::time::Duration;

/// An incast so long has paused, resumed, marked and dropped on any machine.
pub(crate) const ENOUGH: Duration = Duration::from_secs(10);

impl Outcome {
    /// Fills in `faults` and `ok`: loss always, what an overload must show only after [`ENOUGH`].
    pub(crate) fn judge(&mut self, ran: Duration) {
        let Self { lossless, lossy, pfc, ecn, pg, flows, .. } = &*self;
        let whole = flows.iter().filter(|flow| flow.class == "lossless").all(|flow| flow.lossless);
        let short = ran < ENOUGH;
        let checks = [
            (lossless.sent > 0 || short, "nothing lossless was sent"),
            (self.missed_by_receiver == 0, "h3's own program was too late to read all frames"),
            (lossless.lost == 0 && whole, "lossless frames were lost"),
            (lossy.lost > 0 || short, "no lossy frame was lost: there was no overload"),
            (
                short || (pfc.xoff > 0 && pfc.refresh > 0 && pfc.xon > 0),
                "not every kind of PFC was sent",
            ),
            (ecn.marked > 0 || short, "no frame was marked"),
            (pg.headroom_peak_cells > 0 || short, "Headroom was never used"),
            (pg.headroom_peak_cells <= pg.headroom_cells, "Headroom was exceeded"),
            (self.lossless_violations == 0, "the switch counts lossless violations"),
        ];
        let faults = checks.iter().filter(|(holds, _)| !holds);
        self.faults = faults.map(|(_, fault)| (*fault).to_owned()).collect();
        self.ok = self.faults.is_empty();
    }

    /// The last lines: whether all was as it must be, each fault, and the likely cause.
    pub(crate) fn verdict(&self, ran: Duration) -> String {
        let (lost, sent) = (self.lossless.lost, self.lossless.sent);
        let mut text = match (self.ok, ran < ENOUGH) {
            (true, false) => format!("demo: as it must be: {lost} of {sent} lossless frames lost"),
            (true, true) => format!(
                "demo: {lost} of {sent} lossless frames lost; the rest is judged after {} s",
                ENOUGH.as_secs()
            ),
            (false, _) => format!("demo: NOT as it must be: {lost} of {sent} lossless frames lost"),
        };
        for fault in &self.faults {
            text += &format!("\ndemo:   {fault}");
        }
        if !self.ok && self.goodput_bps < BUSY_BPS {
            text += &format!(
                "\ndemo: the CPU was the limit, h3's 1G carried {} Mb/s: a quiet machine helps",
                self.goodput_bps / 1_000_000
            );
        }
        if self.longest_gap_ns > self.stall_survived_ns {
            text += &format!(
                "\ndemo: this machine stalled the switch {} ms; it survives {} ms",
                self.longest_gap_ns / 1_000_000,
                self.stall_survived_ns / 1_000_000
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Ecn, Lossless, Lossy, Pfc, Pg};

    fn good() -> Outcome {
        let mut outcome = Outcome {
            lossless: Lossless { sent: 90, received: 90, lost: 0, goodput_bps: 1 },
            lossy: Lossy { sent: 9, received: 8, lost: 1 },
            pfc: Pfc { xoff: 1, refresh: 1, xon: 1 },
            ecn: Ecn { marked: 1 },
            pg: Pg { headroom_peak_cells: 1, headroom_cells: 2, ..Pg::default() },
            longest_gap_ns: 1_000_000,
            goodput_bps: BUSY_BPS,
            stall_survived_ns: 15_900_000,
            ..Outcome::default()
        };
        outcome.judge(ENOUGH);
        outcome
    }

    #[test]
    fn a_good_run_is_said_to_be_one() {
        let outcome = good();
        assert!(outcome.ok && outcome.faults.is_empty());
        let said = "demo: as it must be: 0 of 90 lossless frames lost";
        assert_eq!(outcome.verdict(ENOUGH), said);
    }

    #[test]
    fn loss_is_a_fault_however_short_the_run_was() {
        for ran in [Duration::from_secs(1), ENOUGH] {
            let mut outcome = good();
            outcome.lossless.lost = 7;
            outcome.lossless_violations = 7;
            outcome.longest_gap_ns = 214_000_000;
            outcome.goodput_bps = 244_000_000;
            outcome.judge(ran);
            assert!(!outcome.ok);
            let said = "demo: NOT as it must be: 7 of 90 lossless frames lost\n\
                        demo:   lossless frames were lost\n\
                        demo:   the switch counts lossless violations\n\
                        demo: the CPU was the limit, h3's 1G carried 244 Mb/s: a quiet machine \
                        helps\n\
                        demo: this machine stalled the switch 214 ms; it survives 15 ms";
            assert_eq!(outcome.verdict(ran), said);
        }
    }

    #[test]
    fn what_an_overload_shows_takes_its_time() {
        let mut outcome = good();
        outcome.pfc.xon = 0;
        outcome.judge(Duration::from_secs(1));
        assert!(outcome.ok, "{:?}", outcome.faults);
        outcome.judge(ENOUGH);
        assert_eq!(outcome.faults, ["not every kind of PFC was sent"]);
    }
}
