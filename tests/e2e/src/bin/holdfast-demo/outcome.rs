//! What came out, as it is written to the JSON file, and what it must be.

use crate::incast::{CLASSES, PROFILE, SWITCH};
use holdfast_api::message::{Call, EcnReply, PfcReply, PgFilter, PgReply, PortFilter, QueueFilter};
use holdfast_e2e::{Lab, LabError};
use serde::Serialize;
use std::time::Duration;

/// The name of the class that a DSCP belongs to.
pub(crate) fn class_of(dscp: u8) -> &'static str {
    CLASSES.iter().find(|class| class.dscp == dscp).map_or("other", |class| class.name)
}

/// The whole outcome. `pfc` and `ecn` are sums over ports, `pg` is the one with the highest peak.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    profile: String,
    lossless: Lossless,
    lossy: Lossy,
    pfc: Pfc,
    ecn: Ecn,
    pg: Pg,
    lossless_violations: u64,
    /// One for each host and class.
    pub(crate) flows: Vec<Flow>,
    /// Frames that reached h3 and that its program was too late to read: no fault of the switch.
    #[serde(skip)]
    pub(crate) missed_by_receiver: u64,
    /// The longest time between two steps of a worker: what a pause must outlast.
    #[serde(skip)]
    longest_gap: Duration,
}

#[derive(Debug, Default, Serialize)]
struct Lossless {
    sent: u64,
    received: u64,
    lost: u64,
    goodput_bps: u64,
}

#[derive(Debug, Default, Serialize)]
struct Lossy {
    sent: u64,
    received: u64,
    lost: u64,
}

/// PFC frames that the switch sent.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Pfc {
    pub(crate) xoff: u64,
    pub(crate) refresh: u64,
    pub(crate) xon: u64,
}

#[derive(Debug, Serialize)]
struct Ecn {
    marked: u64,
}

/// A PG at its highest.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Pg {
    pub(crate) port: String,
    pub(crate) service_peak_cells: u32,
    pub(crate) xoff_cells: u32,
    pub(crate) headroom_peak_cells: u32,
    pub(crate) headroom_cells: u32,
}

/// One class of one host. `lossless` only if every sequence number sent has arrived.
#[derive(Debug, Serialize)]
pub(crate) struct Flow {
    pub(crate) host: String,
    pub(crate) class: String,
    pub(crate) dscp: u8,
    pub(crate) qp: u32,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) lost: u64,
    pub(crate) psn_sent: u32,
    pub(crate) psn_received: u32,
    pub(crate) lossless: bool,
}

impl Outcome {
    /// What the switch says; flows are added by [`Self::sum`] and before.
    pub(crate) fn read(lab: &mut Lab) -> Result<Self, LabError> {
        let switch = lab.switch(SWITCH)?;
        let ports = switch.ports()?;
        let gaps = ports.workers.iter().map(|worker| worker.longest_gap_ns);
        Ok(Self {
            profile: PROFILE.to_owned(),
            lossless: Lossless::default(),
            lossy: Lossy::default(),
            pfc: Pfc::read(lab)?,
            ecn: Ecn { marked: marked(lab)? },
            pg: Pg::read(lab)?,
            lossless_violations: ports.ports.iter().map(|port| port.lossless_violations).sum(),
            flows: Vec::new(),
            missed_by_receiver: 0,
            longest_gap: Duration::from_nanos(gaps.max().unwrap_or(0)),
        })
    }

    /// Sums the flows up.
    pub(crate) fn sum(&mut self, goodput_bps: u64) {
        let sum = |class: &str, count: fn(&Flow) -> u64| {
            self.flows.iter().filter(|flow| flow.class == class).map(count).sum()
        };
        self.lossless = Lossless {
            sent: sum("lossless", |flow| flow.sent),
            received: sum("lossless", |flow| flow.received),
            lost: sum("lossless", |flow| flow.lost),
            goodput_bps,
        };
        self.lossy = Lossy {
            sent: sum("lossy", |flow| flow.sent),
            received: sum("lossy", |flow| flow.received),
            lost: sum("lossy", |flow| flow.lost),
        };
    }

    /// What isn't as it must be after an incast long enough to pause.
    pub(crate) fn faults(&self) -> Vec<String> {
        let Self { lossless, lossy, pfc, ecn, pg, flows, .. } = self;
        let whole = flows.iter().filter(|flow| flow.class == "lossless").all(|flow| flow.lossless);
        let checks = [
            (lossless.sent > 0, "nothing lossless was sent"),
            (self.missed_by_receiver == 0, "h3's own program was too late to read all frames"),
            (lossless.lost == 0 && whole, "lossless frames were lost"),
            (lossy.lost > 0, "no lossy frame was lost: there was no overload"),
            (pfc.xoff > 0 && pfc.refresh > 0 && pfc.xon > 0, "not every kind of PFC was sent"),
            (ecn.marked > 0, "no frame was marked"),
            (pg.headroom_peak_cells > 0, "Headroom was never used"),
            (pg.headroom_peak_cells <= pg.headroom_cells, "Headroom was exceeded"),
            (self.lossless_violations == 0, "the switch counts lossless violations"),
        ];
        checks.iter().filter(|(holds, _)| !holds).map(|(_, fault)| (*fault).to_owned()).collect()
    }

    /// Rows for people: what, value, what it means.
    pub(crate) fn rows(&self) -> Vec<[String; 3]> {
        let Self { lossless, lossy, pfc, ecn, pg, .. } = self;
        let row =
            |what: &str, value: String, meaning: &str| [what.to_owned(), value, meaning.to_owned()];
        let counts = |sent, received, lost| format!("{sent} / {received} / {lost}");
        vec![
            row(
                "lossless frames sent / received / lost",
                counts(lossless.sent, lossless.received, lossless.lost),
                "lost must be 0",
            ),
            row(
                "lossless goodput",
                format!("{} Mb/s", lossless.goodput_bps / 1_000_000),
                "its share of h3's 1G beside the lossy class",
            ),
            row(
                "lossy frames sent / received / lost",
                counts(lossy.sent, lossy.received, lossy.lost),
                "the overload has to go somewhere: here",
            ),
            row(
                "PFC sent: XOFF / refresh / XON",
                counts(pfc.xoff, pfc.refresh, pfc.xon),
                "how h1 and h2 were held back",
            ),
            row("frames marked CE", ecn.marked.to_string(), "ECN acts before PFC"),
            row(
                &format!("PG 3 of {}: Service peak / XOFF", pg.port),
                format!("{} / {} cells", pg.service_peak_cells, pg.xoff_cells),
                "pause when reached",
            ),
            row(
                &format!("PG 3 of {}: Headroom peak / size", pg.port),
                format!("{} / {} cells", pg.headroom_peak_cells, pg.headroom_cells),
                "frames in flight after the pause; must fit",
            ),
            row(
                "lossless violations",
                self.lossless_violations.to_string(),
                "the number that must stay 0",
            ),
            row(
                "longest time the switch had no core",
                format!("{:.1?}", self.longest_gap),
                "a pause must outlast it; a quiet machine helps",
            ),
        ]
    }
}

impl Pfc {
    /// Sums over ports and priorities.
    pub(crate) fn read(lab: &mut Lab) -> Result<Self, LabError> {
        let reply: PfcReply = lab.switch(SWITCH)?.call(Call::ShowPfc(PortFilter::default()))?;
        let all = reply.ports.iter().flat_map(|port| &port.priorities);
        Ok(all.map(|priority| priority.transmitted).fold(Self::default(), |sum, one| Self {
            xoff: sum.xoff + one.xoff,
            refresh: sum.refresh + one.refresh,
            xon: sum.xon + one.xon,
        }))
    }
}

impl Pg {
    /// The lossless PG whose Headroom held most; with equal ones the PG that held most in all.
    pub(crate) fn read(lab: &mut Lab) -> Result<Self, LabError> {
        let reply: PgReply = lab.switch(SWITCH)?.call(Call::ShowPg(PgFilter::default()))?;
        let peak = |pg: &&holdfast_api::message::PgStatus| {
            let peak = pg.watermark.persistent;
            (peak.headroom, peak.service)
        };
        let highest = reply.pgs.iter().filter(|pg| pg.lossless).max_by_key(peak);
        let read = |pg: &holdfast_api::message::PgStatus| Self {
            port: pg.port.clone(),
            service_peak_cells: pg.watermark.persistent.service,
            xoff_cells: pg.thresholds.xoff.unwrap_or(pg.thresholds.limit),
            headroom_peak_cells: pg.watermark.persistent.headroom,
            headroom_cells: pg.thresholds.headroom,
        };
        Ok(highest.map(read).unwrap_or_default())
    }
}

/// Frames marked, summed over ports and queues.
pub(crate) fn marked(lab: &mut Lab) -> Result<u64, LabError> {
    let reply: EcnReply = lab.switch(SWITCH)?.call(Call::ShowEcn(QueueFilter::default()))?;
    Ok(reply.queues.iter().map(|queue| queue.marked).sum())
}
