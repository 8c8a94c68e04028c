//! The traffic: two senders, one receiver.

use crate::outcome::{class_of, Flow, Outcome};
use holdfast_e2e::{Endpoint, Lab, LabError};
use serde::de::DeserializeOwned;
use serde::Deserialize;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// The profile that the switch runs.
pub(crate) const PROFILE: &str = "veth-lab-1g";
/// The switch's name in the lab.
pub(crate) const SWITCH: &str = "sw";
const RECEIVER: &str = "h3";
const SENDERS: [&str; 2] = ["h1", "h2"];
/// The receiver ends once nothing has come for so many ms.
const IDLE: &str = "2000";
/// Its socket buffer in MiB: what it may be late by, where hosts and switch share a few cores.
const BUFFER: &str = "512";
/// Until the receiver has read and reported everything.
const LAST: Duration = Duration::from_secs(60);

/// One class as each sender offers it.
pub(crate) struct Class {
    /// Its name in the outcome.
    pub(crate) name: &'static str,
    /// Its DSCP.
    pub(crate) dscp: u8,
    /// What each sender offers, Mb/s.
    pub(crate) megabits: u64,
    /// Frame length, bytes without FCS.
    pub(crate) size: u64,
}

/// Both classes of a sender together offer more than its own link carries: each is always
/// behind, and what one leaves, the other takes.
pub(crate) const CLASSES: [Class; 2] = [
    Class { name: "lossless", dscp: 26, megabits: 800, size: 1086 },
    Class { name: "lossy", dscp: 0, megabits: 400, size: 1514 },
];

/// What a person should know before numbers come.
pub(crate) fn description() -> String {
    let of =
        |class: &Class| format!("{} Mb/s {} (DSCP {})", class.megabits, class.name, class.dscp);
    let classes: Vec<_> = CLASSES.iter().map(of).collect();
    format!(
        "demo: {} each offer {}\n      to {RECEIVER}'s port of 1G",
        SENDERS.join(" and "),
        classes.join(" and ")
    )
}

/// Running endpoints.
pub(crate) struct Incast {
    senders: Vec<(&'static str, Endpoint)>,
    receiver: Endpoint,
}

impl Incast {
    /// The receiver first, so that it misses nothing.
    pub(crate) fn start(lab: &mut Lab) -> Result<Self, LabError> {
        let receiver =
            lab.endpoint(RECEIVER, &["receive", "--until-idle", IDLE, "--buffer", BUFFER])?;
        let mut senders = Vec::new();
        for (number, host) in SENDERS.into_iter().enumerate() {
            let flow = |(index, class): (usize, &Class)| {
                let qp = (number + 1) * 16 + index;
                let Class { dscp, megabits, size, .. } = class;
                format!("dscp={dscp},qp={qp},rate={megabits}M,size={size}")
            };
            let flows: Vec<_> = CLASSES.iter().enumerate().map(flow).collect();
            let flows: Vec<_> = flows.iter().map(String::as_str).collect();
            senders.push((host, lab.send(host, RECEIVER, &flows, &[])?));
        }
        Ok(Self { senders, receiver })
    }

    /// Fails if an endpoint has ended by itself.
    pub(crate) fn check(&mut self) -> Result<(), LabError> {
        let senders = self.senders.iter_mut().map(|(_, endpoint)| endpoint);
        for endpoint in senders.chain([&mut self.receiver]) {
            if endpoint.has_ended()? {
                let what = "an endpoint ended before its time".to_owned();
                return Err(LabError::Late { what, within: Duration::ZERO });
            }
        }
        Ok(())
    }

    /// Stops the senders, waits until nothing comes any more, and puts the reports together.
    pub(crate) fn finish(self, lab: &mut Lab) -> Result<Outcome, LabError> {
        let mut sent = Vec::new();
        for (host, endpoint) in self.senders {
            let report: SenderReport = read(host, endpoint.stop()?)?;
            sent.push((host, report));
        }
        let received: ReceiverReport = read(RECEIVER, self.receiver.report(LAST)?)?;
        let mut outcome = Outcome::read(lab)?;
        for (host, report) in &sent {
            let flows = report.flows_sent.iter();
            outcome.flows.extend(flows.map(|sent| flow(host, sent, &received)));
        }
        let share = |class: &str| {
            let of = |flow: &&Arrived| class_of(flow.dscp) == class;
            let bytes: u64 = received.flows_received.iter().filter(of).map(|flow| flow.bytes).sum();
            let bits = u128::from(received.goodput_bps) * u128::from(bytes);
            let bits = bits.checked_div(u128::from(received.received_bytes)).unwrap_or(0);
            u64::try_from(bits).unwrap_or(u64::MAX)
        };
        outcome.sum(share("lossless"));
        outcome.goodput_bps = received.goodput_bps;
        outcome.missed_by_receiver = received.socket_drops;
        Ok(outcome)
    }
}

fn read<T: DeserializeOwned>(host: &str, report: Value) -> Result<T, LabError> {
    serde_json::from_value(report)
        .map_err(|error| LabError::Content { path: PathBuf::from(host), why: error.to_string() })
}

fn flow(host: &str, sent: &Sent, received: &ReceiverReport) -> Flow {
    let arrived = received.flows_received.iter().find(|flow| flow.qp == sent.qp);
    let count = arrived.map_or(0, |flow| flow.received - flow.duplicates);
    let stale = arrived.map_or(0, |flow| flow.stale);
    let next_psn = arrived.map_or(0, |flow| flow.next_psn);
    let class = class_of(sent.dscp);
    let lost = sent.sent.saturating_sub(count - stale);
    Flow {
        host: host.to_owned(),
        class: class.to_owned(),
        dscp: sent.dscp,
        qp: sent.qp,
        sent: sent.sent,
        received: count,
        lost,
        psn_sent: sent.sent,
        psn_received: count - stale,
        next_psn,
        lossless: lost == 0 && sent.next_psn == next_psn,
    }
}

/// What is used of a sender's report.
#[derive(Deserialize)]
struct SenderReport {
    flows_sent: Vec<Sent>,
}

#[derive(Deserialize)]
struct Sent {
    qp: u32,
    dscp: u8,
    sent: u64,
    next_psn: u32,
}

/// What is used of the receiver's report.
#[derive(Deserialize)]
struct ReceiverReport {
    socket_drops: u64,
    received_bytes: u64,
    goodput_bps: u64,
    flows_received: Vec<Arrived>,
}

#[derive(Deserialize)]
struct Arrived {
    qp: u32,
    dscp: u8,
    received: u64,
    duplicates: u64,
    stale: u64,
    bytes: u64,
    next_psn: u32,
}
