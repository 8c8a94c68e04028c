//! For people: a line a second while it runs, a table at the end.

use crate::incast::SWITCH;
use crate::outcome::{marked, Outcome, Pfc, Pg};
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::Table;
use holdfast_e2e::{Lab, LabError};
use std::time::Duration;

/// The switch's counters at one moment.
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

/// One line of progress.
pub(crate) fn progress(elapsed: Duration, now: &Reading, before: Option<&Reading>) -> String {
    let Reading { pfc, pg, .. } = now;
    format!(
        "{:>4} s | lossless {:>4} Mb/s, violations {} | lossy {:>4} Mb/s, dropped {} | PFC {} XOFF \
         {} refresh {} XON | CE {} | {} PG 3: Service peak {}/{}, Headroom peak {}/{}",
        elapsed.as_secs(),
        now.megabits(0, before),
        now.violations,
        now.megabits(1, before),
        now.lossy_dropped,
        pfc.xoff,
        pfc.refresh,
        pfc.xon,
        now.marked,
        pg.port,
        pg.service_peak_cells,
        pg.xoff_cells,
        pg.headroom_peak_cells,
        pg.headroom_cells,
    )
}

/// The table at the end.
pub(crate) fn table(outcome: &Outcome) -> String {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED).set_header(["", "measured", "what it means"]);
    for row in outcome.rows() {
        table.add_row(row);
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
