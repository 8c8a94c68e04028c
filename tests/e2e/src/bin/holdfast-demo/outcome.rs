//! What came out, as it is written to the JSON file, and what it must be.

use crate::incast::{CLASSES, PROFILE, SWITCH};
use holdfast_api::message::{Call, EcnReply, PfcReply, PgFilter, PgReply, PortFilter, QueueFilter};
use holdfast_e2e::{Lab, LabError};
use serde::Serialize;

/// Above this h3's port of 1G is busy: frames of 1086 bytes are 97.8 % of what is on the wire.
pub(crate) const BUSY_BPS: u64 = 900_000_000;

/// The name of the class that a DSCP belongs to.
pub(crate) fn class_of(dscp: u8) -> &'static str {
    CLASSES.iter().find(|class| class.dscp == dscp).map_or("other", |class| class.name)
}

/// The whole outcome. `pfc` and `ecn` are sums over ports, `pg` is the one with the highest peak.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Outcome {
    pub(crate) profile: String,
    pub(crate) lossless: Lossless,
    pub(crate) lossy: Lossy,
    pub(crate) pfc: Pfc,
    pub(crate) ecn: Ecn,
    pub(crate) pg: Pg,
    pub(crate) lossless_violations: u64,
    /// One for each host and class.
    pub(crate) flows: Vec<Flow>,
    /// Frames that reached h3 and that its program was too late to read: no fault of the switch.
    pub(crate) missed_by_receiver: u64,
    /// The longest time between two steps of a worker.
    pub(crate) longest_gap_ns: u64,
    /// How long a worker may be late without loss: the least of all ports, by the smallest
    /// lossless frame (SPEC 4.3).
    pub(crate) stall_survived_ns: u64,
    /// Nothing is in `faults`.
    pub(crate) ok: bool,
    /// What isn't as it must be, one sentence each.
    pub(crate) faults: Vec<String>,
    /// Everything that h3 received, bits of frames a second.
    #[serde(skip)]
    pub(crate) goodput_bps: u64,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct Lossless {
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) lost: u64,
    pub(crate) goodput_bps: u64,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct Lossy {
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) lost: u64,
}

/// PFC frames that the switch sent.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Pfc {
    pub(crate) xoff: u64,
    pub(crate) refresh: u64,
    pub(crate) xon: u64,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct Ecn {
    pub(crate) marked: u64,
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
    /// Sequence numbers sent.
    pub(crate) psn_sent: u64,
    /// Sequence numbers that arrived, each counted once.
    pub(crate) psn_received: u64,
    /// The 24-bit number that h3 expects next.
    pub(crate) next_psn: u32,
    pub(crate) lossless: bool,
}

impl Outcome {
    /// What the switch says; flows are added by [`Self::sum`] and before.
    pub(crate) fn read(lab: &mut Lab) -> Result<Self, LabError> {
        let switch = lab.switch(SWITCH)?;
        let ports = switch.ports()?;
        let gaps = ports.workers.iter().map(|worker| worker.longest_gap_ns);
        let survived = ports.ports.iter().map(|port| port.stall_survived_ns);
        Ok(Self {
            profile: PROFILE.to_owned(),
            pfc: Pfc::read(lab)?,
            ecn: Ecn { marked: marked(lab)? },
            pg: Pg::read(lab)?,
            lossless_violations: ports.ports.iter().map(|port| port.lossless_violations).sum(),
            longest_gap_ns: gaps.max().unwrap_or(0),
            stall_survived_ns: survived.min().unwrap_or(0),
            ..Self::default()
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
