//! PFC, pacing and watchdog of one port.

use super::largest_frame;
use crate::facts::PortFacts;
use crate::merge::PortDocs;
use holdfast_api::amount::{span_text, Span};
use holdfast_api::doc::Finding;
use holdfast_api::profile_doc::{ResumeDoc, WatchdogActionDoc};
use holdfast_core::ids::{PerPg, Priority, PrioritySet};
use holdfast_core::profile::{PfcSpec, PgSpec, Resume, WatchdogAction, WatchdogSpec};
use holdfast_core::units::{Nanos, Quanta};

/// The default of `rx_backlog_mark` (SPEC 4.3), frames.
pub(crate) const RX_BACKLOG_MARK: u32 = 256;
/// What is in the TX ring at least, as time at the declared speed (SPEC 4.2).
const TX_INFLIGHT: Nanos = Nanos::micros(10);
/// The default of `catch_up`: what a worker on a shared machine is late by.
const CATCH_UP: Nanos = Nanos::millis(2);
/// Later than this a port sends a burst, not its rate.
const MAX_CATCH_UP: Nanos = Nanos::millis(10);
/// Both times of the watchdog by default (SPEC 8).
const WATCHDOG_TIME: Nanos = Nanos::millis(200);

/// Neither of the two is longer.
const MAX_WATCHDOG_TIME: Nanos = Nanos::millis(60_000);

pub(super) fn pfc(
    docs: &PortDocs<'_>,
    facts: &PortFacts,
    pgs: &PerPg<PgSpec>,
    rx_ring: u32,
) -> Result<PfcSpec, Finding> {
    let doc = docs.pfc();
    let key = |name: &str| format!("port.{}.pfc.{name}", facts.name);
    let lossless = pgs.0.iter().filter(|pg| pg.lossless);
    let enabled = match &doc.enabled {
        Some(list) => list.iter().fold(PrioritySet::EMPTY, |set, priority| {
            set.with(Priority::from_bits(priority.number()))
        }),
        None if facts.link_pause => PrioritySet::EMPTY,
        None => lossless.fold(PrioritySet::EMPTY, |set, pg| set.or(pg.priorities)),
    };
    let quanta = doc.pause_quanta.unwrap_or(u16::MAX);
    if quanta == 0 {
        let fix = "use 1..65535; a pause of 0 is a resume";
        return Err(Finding::new(key("pause_quanta"), "out of range", fix).numbers(0, "1..65535"));
    }
    let mark = doc.rx_backlog_mark.unwrap_or(RX_BACKLOG_MARK);
    // From 3/4 of the ring on lossy frames are dropped (SPEC 4.3): the mark must act before.
    let most = rx_ring / 4 * 3;
    if mark == 0 || mark >= most {
        let fix = "use a smaller mark, or a larger rings.rx in switch.toml";
        let message = "the backlog must pause before the ring is under pressure";
        let finding = Finding::new(key("rx_backlog_mark"), message, fix);
        return Err(finding.numbers(mark, format!("1..{}", most.saturating_sub(1))));
    }
    Ok(PfcSpec {
        enabled,
        quanta: Quanta(quanta),
        resume: match doc.resume.unwrap_or_default() {
            ResumeDoc::Xon => Resume::Xon,
            ResumeDoc::Expire => Resume::Expire,
        },
        link_pause: facts.link_pause,
        rx_backlog_mark: mark,
    })
}

/// `tx_inflight` in bytes and `catch_up`.
pub(super) fn pacing(docs: &PortDocs<'_>, facts: &PortFacts) -> Result<(u32, Nanos), Finding> {
    let doc = docs.scheduler();
    let key = |name: &str| format!("port.{}.scheduler.{name}", facts.name);
    let two_frames = 2 * u64::from(largest_frame(facts.mtu).0);
    let default = two_frames.max(facts.speed.bytes_in(TX_INFLIGHT).0);
    let bytes = doc.tx_inflight.map_or(default, |amount| amount.0);
    let Some(tx_inflight) = u32::try_from(bytes).ok().filter(|_| bytes >= two_frames) else {
        let message = "the TX ring must hold two largest frames";
        let finding = Finding::new(key("tx_inflight"), message, "raise it, or remove the key");
        return Err(finding.numbers(bytes, format!("at least {two_frames}")));
    };
    let catch_up = doc.catch_up.map_or(CATCH_UP, |span| span.0);
    if catch_up > MAX_CATCH_UP {
        let finding = Finding::new(key("catch_up"), "out of range", "use less, or remove the key");
        return Err(finding.numbers(span_text(catch_up.0), span_text(MAX_CATCH_UP.0)));
    }
    Ok((tx_inflight, catch_up))
}

pub(super) fn watchdog(docs: &PortDocs<'_>, port: &str) -> Result<Option<WatchdogSpec>, Finding> {
    let Some(doc) = docs.watchdog() else { return Ok(None) };
    let time = |name: &str, span: Option<Span>, least: Nanos| {
        let time = span.map_or(WATCHDOG_TIME, |span| span.0);
        if (least..=MAX_WATCHDOG_TIME).contains(&time) {
            return Ok(time);
        }
        let limit = format!("{}..{}", span_text(least.0), span_text(MAX_WATCHDOG_TIME.0));
        let fix = format!("use a time in {limit}");
        let finding = Finding::new(format!("port.{port}.watchdog.{name}"), "out of range", fix);
        Err(finding.numbers(span_text(time.0), limit))
    };
    let spec = WatchdogSpec {
        // What is only unusual (outside of 100ms..5s) is the linter's to say: P07.
        detection_time: time("detection_time", doc.detection_time, Nanos::millis(1))?,
        restoration_time: time("restoration_time", doc.restoration_time, Nanos::millis(100))?,
        action: match doc.action.unwrap_or_default() {
            WatchdogActionDoc::Drop => WatchdogAction::Drop,
            WatchdogActionDoc::Forward => WatchdogAction::Forward,
            WatchdogActionDoc::Alert => WatchdogAction::Alert,
        },
        back_off: doc.back_off.unwrap_or(true),
    };
    Ok(doc.enabled.unwrap_or(true).then_some(spec))
}
