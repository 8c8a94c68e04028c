//! For people: a line a second while it runs, a table at the end. Both fit into 80 columns.

use crate::incast::SWITCH;
use crate::outcome::{marked, Outcome, Pfc, Pg, BUSY_BPS};
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{ColumnConstraint, ContentArrangement, Table};
use holdfast_e2e::{Lab, LabError};
use std::io::{self, Write};
use std::time::Duration;

/// Columns of the terminal that is counted on.
const COLUMNS: u16 = 80;

/// Writes a line; `false` once nobody reads any more, as behind `| head`.
pub(crate) fn say(line: &str) -> bool {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).is_ok()
}

/// The switch's counters at one moment.
#[derive(Default)]
pub(crate) struct Reading {
    /// Since the reading before.
    span: Duration,
    /// Bytes sent to h3 from the lossless and the lossy queue.
    bytes: [u64; 2],
    lossy_dropped: u64,
    violations: u64,
    pfc: Pfc,
    marked: u64,
    pg: Pg,
}

impl Reading {
    /// Asks the switch.
    pub(crate) fn take(lab: &mut Lab, span: Duration) -> Result<Self, LabError> {
        let switch = lab.switch(SWITCH)?;
        let (lossless, lossy) = (switch.queue("h3", 3)?, switch.queue("h3", 0)?);
        let ports = switch.ports()?.ports;
        let dropped: u64 = ports.iter().flat_map(|port| port.drops.values()).sum();
        let violations = ports.iter().map(|port| port.lossless_violations).sum();
        Ok(Self {
            span,
            bytes: [lossless.tx_bytes, lossy.tx_bytes],
            lossy_dropped: dropped,
            violations,
            pfc: Pfc::read(lab)?,
            marked: marked(lab)?,
            pg: Pg::read(lab)?,
        })
    }

    fn megabits(&self, class: usize, before: Option<&Self>) -> u64 {
        let at = |reading: &Self| reading.bytes.get(class).copied().unwrap_or(0);
        let bytes = at(self).saturating_sub(before.map_or(0, at));
        let micros = u64::try_from(self.span.as_micros()).unwrap_or(u64::MAX);
        (8 * bytes).checked_div(micros).unwrap_or(0)
    }
}

/// What the columns of [`progress`] are.
pub(crate) const HEADER: &str = concat!(
    "         lossless      lossy         PFC sent             CE    PG 3 peak, cells\n",
    "    s  Mb/s  lost  Mb/s    lost   XOFF refresh    XON marked   Service  Headroom",
);

/// One line of progress.
pub(crate) fn progress(elapsed: Duration, now: &Reading, before: Option<&Reading>) -> String {
    let Reading { pfc, pg, .. } = now;
    let of = |peak: u32, size: u32| format!("{peak}/{size}");
    format!(
        "{:>5} {:>5} {:>5} {:>5} {:>7} {:>6} {:>7} {:>6} {:>6} {:>9} {:>9}",
        elapsed.as_secs(),
        now.megabits(0, before),
        short(now.violations, 5),
        now.megabits(1, before),
        short(now.lossy_dropped, 7),
        short(pfc.xoff, 6),
        short(pfc.refresh, 7),
        short(pfc.xon, 6),
        short(now.marked, 6),
        of(pg.service_peak_cells, pg.xoff_cells),
        of(pg.headroom_peak_cells, pg.headroom_cells),
    )
}

/// A count in at most `digits` characters: thousands as `k`, millions as `M`.
fn short(count: u64, digits: usize) -> String {
    let texts =
        [count.to_string(), format!("{}k", count / 1_000), format!("{}M", count / 1_000_000)];
    let [_, _, millions] = &texts;
    texts.iter().find(|text| text.len() <= digits).unwrap_or(millions).clone()
}

/// The table at the end.
pub(crate) fn table(outcome: &Outcome) -> String {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED).set_header(["", "measured", "what it means"]);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(COLUMNS);
    for row in rows(outcome) {
        table.add_row(row);
    }
    // What it means is wrapped between words, names and numbers never.
    for column in table.column_iter_mut().take(2) {
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
    let mut flows = Table::new();
    flows.load_preset(UTF8_FULL_CONDENSED);
    flows.set_header(["flow", "DSCP", "sent", "received", "lost", "every PSN arrived"]);
    for flow in &outcome.flows {
        let whole = if flow.lossless { "yes" } else { "no" };
        flows.add_row([
            format!("{} {}", flow.host, flow.class),
            flow.dscp.to_string(),
            flow.sent.to_string(),
            flow.received.to_string(),
            flow.lost.to_string(),
            whole.to_owned(),
        ]);
    }
    format!("{table}\n{flows}")
}

/// What, value, what it means.
fn rows(outcome: &Outcome) -> Vec<[String; 3]> {
    let Outcome { lossless, lossy, pfc, ecn, pg, .. } = outcome;
    let row = |what: &str, value: String, meaning: &str| [what.to_owned(), value, meaning.into()];
    let counts = |sent, received, lost| format!("{sent}/{received}/{lost}");
    let gap = Duration::from_nanos(outcome.longest_gap_ns);
    let port = &pg.port;
    vec![
        row(
            "lossless sent/received/lost",
            counts(lossless.sent, lossless.received, lossless.lost),
            "lost must be 0",
        ),
        row(
            "lossless goodput",
            format!("{} Mb/s", lossless.goodput_bps / 1_000_000),
            &goodput_text(outcome.goodput_bps),
        ),
        row(
            "lossy sent/received/lost",
            counts(lossy.sent, lossy.received, lossy.lost),
            "the overload has to go somewhere: here",
        ),
        row(
            "PFC XOFF/refresh/XON",
            counts(pfc.xoff, pfc.refresh, pfc.xon),
            "how h1 and h2 were held back",
        ),
        row("frames marked CE", ecn.marked.to_string(), "ECN acts before PFC"),
        row(
            &format!("{port} PG 3 Service peak/XOFF"),
            format!("{}/{} cells", pg.service_peak_cells, pg.xoff_cells),
            "pause when reached",
        ),
        row(
            &format!("{port} PG 3 Headroom peak/size"),
            format!("{}/{} cells", pg.headroom_peak_cells, pg.headroom_cells),
            "frames in flight after the pause; must fit",
        ),
        row(
            "lossless violations",
            outcome.lossless_violations.to_string(),
            "the number that must stay 0",
        ),
        row(
            "longest stall of the switch",
            format!("{gap:.1?}"),
            &format!("no core for it; it survives {} ms", outcome.stall_survived_ns / 1_000_000),
        ),
    ]
}

/// What the goodput of the lossless class is a share of.
fn goodput_text(all_bps: u64) -> String {
    if all_bps < BUSY_BPS {
        let all = all_bps / 1_000_000;
        return format!("the CPU was the limit: {all} Mb/s of h3's 1G with the lossy class");
    }
    "its share of h3's 1G beside the lossy class".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Flow, Lossless, Lossy};

    fn columns(text: &str) -> usize {
        text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
    }

    #[test]
    fn progress_fits_into_80_columns() {
        let pg = Pg {
            port: "h1".to_owned(),
            service_peak_cells: 4187,
            xoff_cells: 4096,
            headroom_peak_cells: 1203,
            headroom_cells: 3072,
        };
        let large = Reading {
            span: Duration::from_secs(1),
            bytes: [125_000_000; 2],
            lossy_dropped: 1_234_567_890,
            violations: 12_345_678,
            pfc: Pfc { xoff: 1_234_567, refresh: 123_456_789, xon: 1_234_567 },
            marked: 1_234_567_890,
            pg,
        };
        let line = progress(Duration::from_secs(86_400), &large, None);
        let said = concat!(
            "86400  1000   12M  1000   1234M  1234k 123456k  1234k  1234M ",
            "4187/4096 1203/3072"
        );
        assert_eq!(line, said);
        assert!(columns(&line) <= 80 && columns(HEADER) <= 80, "{}", columns(&line));
        let first = progress(Duration::from_secs(1), &Reading::default(), None);
        assert_eq!(columns(&first), columns(&line), "columns stay where they are");
        assert_eq!(HEADER.lines().last().map(str::len), Some(line.len()));
    }

    #[test]
    fn the_table_fits_and_breaks_no_number() {
        let flow = |host: &str, class: &str| Flow {
            host: host.to_owned(),
            class: class.to_owned(),
            dscp: 26,
            qp: 16,
            sent: 123_456_789,
            received: 123_456_789,
            lost: 123_456_789,
            psn_sent: 1,
            psn_received: 1,
            next_psn: 1,
            lossless: false,
        };
        let outcome = Outcome {
            lossless: Lossless {
                sent: 12_345_678,
                received: 12_345_678,
                lost: 1_234,
                goodput_bps: 600_000_000,
            },
            lossy: Lossy { sent: 1_234_567, received: 123_456, lost: 1_111_111 },
            pg: Pg { port: "h1".to_owned(), headroom_cells: 3072, ..Pg::default() },
            flows: vec![flow("h1", "lossless"), flow("h2", "lossy")],
            goodput_bps: 700_000_000,
            ..Outcome::default()
        };
        let text = table(&outcome);
        assert!(columns(&text) <= 80, "{text}");
        for whole in
            ["12345678/12345678/1234 ", "1234567/123456/1111111 ", "0/3072 cells", " limit"]
        {
            assert!(text.contains(whole), "{whole}:\n{text}");
        }
        assert!(text.contains("CPU"), "{text}");
        assert!(!table(&Outcome { goodput_bps: 978_000_000, ..outcome }).contains("CPU"));
    }
}
