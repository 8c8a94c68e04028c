//! `replay`: frames of a file, as they are.

use holdfast_host::Nanos;
use serde::Serialize;

use crate::cli::ReplayArgs;
use crate::clock::{now, timespec, StopSignal};
use crate::frame_file::{read_hex, read_pcap, NamedFrame};
use crate::link::{Link, Outlet};
use crate::report::{announce, deliver, EndedBy};
use crate::EndpointError;

/// Frames that one call sends at most.
const BURST: usize = 32;
/// How long to leave a device alone whose queue is full.
const REFUSED: Nanos = Nanos(20_000);

/// The report of `replay`.
#[derive(Debug, Serialize)]
struct ReplayReport {
    interface: String,
    ended_by: EndedBy,
    duration_ns: u64,
    frames: usize,
    sent: u64,
    refusals: u64,
}

/// Sends the frames in order, as often as wished.
pub(crate) fn run(args: &ReplayArgs) -> Result<(), EndpointError> {
    let frames = match (&args.hex, &args.pcap) {
        (Some(path), _) => read_hex(path, args.only.as_deref().unwrap_or_default())?,
        (None, Some(path)) => read_pcap(path)?,
        (None, None) => Vec::new(),
    };
    let stop = StopSignal::listen().map_err(EndpointError::Signals)?;
    let link = Link::find(&args.link.interface)?;
    let mut outlet = Outlet::open(&link)?;
    announce(&link)?;
    let start = now();
    let end = args.link.seconds.map(|span| start + span);
    let total = match args.repeat {
        0 => u64::MAX,
        times => times.saturating_mul(frames.len() as u64),
    };
    let gap = Nanos(args.gap.saturating_mul(1000));
    let (mut sent, mut refusals) = (0, 0);
    let ended_by = loop {
        if sent == total {
            break EndedBy::Count;
        }
        if stop.is_set() {
            break EndedBy::Signal;
        }
        if end.is_some_and(|end| now() >= end) {
            break EndedBy::Seconds;
        }
        let burst = next_burst(&frames, sent, total, gap);
        let taken = outlet.send(&burst)?;
        sent += taken as u64;
        if taken < burst.len() {
            refusals += 1;
            sleep(REFUSED);
        } else if gap > Nanos(0) && sent < total {
            sleep(gap);
        }
    };
    let report = ReplayReport {
        interface: link.name().to_owned(),
        ended_by,
        duration_ns: now().since(start).0,
        frames: frames.len(),
        sent,
        refusals,
    };
    Ok(deliver(&report, args.link.json.as_deref())?)
}

/// The frames from number `sent` on: one if there is a gap behind each.
fn next_burst(frames: &[NamedFrame], sent: u64, total: u64, gap: Nanos) -> Vec<&[u8]> {
    let most = if gap > Nanos(0) { 1 } else { BURST };
    let left = usize::try_from(total - sent).unwrap_or(usize::MAX).min(most);
    let first = (sent % frames.len().max(1) as u64) as usize;
    frames.iter().cycle().skip(first).take(left).map(|frame| frame.bytes.as_slice()).collect()
}

/// Sleeps, or less if a signal comes.
fn sleep(span: Nanos) {
    // An interrupted sleep is what a signal is for: the caller looks at its flag.
    let _ = nix::poll::ppoll(&mut [], Some(timespec(span)), None);
}
