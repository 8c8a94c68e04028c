//! `send`, `receive` and `run`: one loop that reads pauses, sends, and checks what arrives.

mod arrivals;
mod departures;

use std::os::fd::AsFd;
use std::time::Duration;

use holdfast_host::{Announcement, ImpairedReceiver, Nanos, PfcReceiver, Sender, Time};
use holdfast_wire::ethernet::ETHERTYPE_MAC_CONTROL;
use holdfast_wire::parse_mac_control;
use indicatif::ProgressBar;
use nix::poll::{ppoll, PollFd, PollFlags};

use arrivals::Arrivals;
use departures::{Departures, Step};

use crate::cli::{ArrivalArgs, HostArgs, LinkArgs, ReceiveArgs, RunArgs, SendArgs, TrafficArgs};
use crate::clock::{now, timespec, StopSignal};
use crate::flow_arg::flows;
use crate::link::{Inlet, Link, LinkError, Outlet, CONTROL_BURST, DATA_BURST};
use crate::report::{announce, by_kind, deliver, Arrived, EndedBy, HostReport};
use crate::EndpointError;

/// Socket buffer for MAC control frames, in bytes: thousands of them.
const CONTROL_BUFFER: usize = 8 << 20;
/// How often the end conditions are looked at when nothing happens.
const LOOK: Nanos = Nanos(20_000_000);
/// How long data gathers before it is read.
const GATHER: Nanos = Nanos(100_000);
/// How long frames are still read after the end, if they never stop coming.
const LAST_READ: Nanos = Nanos(200_000_000);
/// How often the line on a terminal changes.
const PROGRESS: Nanos = Nanos(250_000_000);

/// `send`.
pub(crate) fn send(args: &SendArgs) -> Result<(), EndpointError> {
    exchange(&args.link, &args.host, Some(&args.traffic), None)
}

/// `receive`.
pub(crate) fn receive(args: &ReceiveArgs) -> Result<(), EndpointError> {
    exchange(&args.link, &args.host, None, Some(&args.arrival))
}

/// `run`.
pub(crate) fn run(args: &RunArgs) -> Result<(), EndpointError> {
    exchange(&args.link, &args.host, Some(&args.traffic), Some(&args.arrival))
}

fn exchange(
    place: &LinkArgs,
    host: &HostArgs,
    traffic: Option<&TrafficArgs>,
    arrival: Option<&ArrivalArgs>,
) -> Result<(), EndpointError> {
    let stop = StopSignal::listen().map_err(EndpointError::Signals)?;
    let link = Link::find(&place.interface)?;
    let departures = match traffic {
        Some(traffic) => {
            let flows = flows(traffic, link.mac())?;
            let slack = Nanos(traffic.catch_up.saturating_mul(1000));
            let first = now() + Nanos(traffic.delay.saturating_mul(1_000_000));
            Some(Departures::open(&link, Sender::new(flows, host.speed, slack), first)?)
        }
        None => None,
    };
    let arrivals = arrival.map(|args| Arrivals::open(&link, args)).transpose()?;
    let mut endpoint = Endpoint {
        control: Inlet::open(&link, ETHERTYPE_MAC_CONTROL, CONTROL_BURST, CONTROL_BUFFER)?,
        pfc: ImpairedReceiver::new(
            PfcReceiver::new(host.speed, host.pfc, host.link_pause),
            host.impair.impairments(),
        ),
        departures,
        arrivals,
        announcement: None,
    };
    // Who sends is learned by it.
    if traffic.is_none() && !host.silent {
        endpoint.announcement = Some((Announcement::new(link.mac()), Outlet::open(&link)?));
        endpoint.make_known()?;
    }
    announce(&link)?;
    let start = now();
    let ended_by = endpoint.work(place.seconds.map(|span| start + span), &stop)?;
    let report = endpoint.report(&link, start, ended_by)?;
    Ok(deliver(&report, place.json.as_deref())?)
}

/// A host at work.
struct Endpoint {
    control: Inlet,
    pfc: ImpairedReceiver,
    departures: Option<Departures>,
    arrivals: Option<Arrivals>,
    announcement: Option<(Announcement, Outlet)>,
}

impl Endpoint {
    /// Has the switches learn this host, where that is due. If the device refuses the frame, the
    /// next one tells them.
    fn make_known(&mut self) -> Result<(), LinkError> {
        if let Some((announcement, outlet)) = &mut self.announcement {
            if let Some(frame) = announcement.due(now()) {
                outlet.send(&[frame])?;
            }
        }
        Ok(())
    }

    fn work(&mut self, end: Option<Time>, stop: &StopSignal) -> Result<EndedBy, LinkError> {
        let progress = ProgressBar::new_spinner();
        let mut shown = now();
        let mut over = None;
        loop {
            // Looked at before the sockets are: what had arrived by then is still read.
            let time = now();
            self.make_known()?;
            let called_off = if stop.is_set() {
                Some(EndedBy::Signal)
            } else if end.is_some_and(|end| time >= end) {
                Some(EndedBy::Seconds)
            } else {
                None
            };
            let arrived = match &mut self.arrivals {
                Some(arrivals) => arrivals.receive()?,
                None => 0,
            };
            let step = match (called_off, &mut self.departures) {
                (None, Some(departures)) => departures.step(&mut self.control, &mut self.pfc)?,
                _ => {
                    read_control(&mut self.control, &mut self.pfc)?;
                    Step::Done
                }
            };
            if let Some(reason) = called_off {
                if arrived == 0 || time.since(*over.get_or_insert(time)) >= LAST_READ {
                    return Ok(reason);
                }
            }
            if let Some(reason) = self.finished(time, step) {
                return Ok(reason);
            }
            if arrived < DATA_BURST {
                self.wait(step, arrived > 0);
            }
            if time.since(shown) >= PROGRESS {
                shown = time;
                self.show(&progress);
            }
        }
    }

    /// Whether both halves have what they wanted. A half that has no end of its own doesn't keep
    /// the other one going.
    fn finished(&self, time: Time, step: Step) -> Option<EndedBy> {
        let sent_all = self.departures.is_none() || step == Step::Done;
        match &self.arrivals {
            Some(arrivals) if arrivals.has_end() => arrivals.ended(time).filter(|_| sent_all),
            Some(_) if self.departures.is_none() => None,
            _ => sent_all.then_some(EndedBy::Count),
        }
    }

    /// Sleeps until a pause or data arrives, the next frame is due, or it is time to look around.
    /// While data is `flowing` it is let gather instead of waking this thread for each frame; the
    /// kernel has stamped it already.
    fn wait(&self, step: Step, flowing: bool) {
        let time = now();
        let longest = if flowing { GATHER } else { LOOK };
        let span = match step {
            Step::Wait(until) => until.since(time).min(longest),
            Step::Sent => return,
            Step::Done => longest,
        };
        // A delayed pause or resume is an event as one that arrives is.
        let span = self.pfc.next_change().map_or(span, |due| due.since(time).min(span));
        let mut fds = vec![PollFd::new(self.control.as_fd(), PollFlags::POLLIN)];
        if let Some(arrivals) = self.arrivals.as_ref().filter(|_| !flowing) {
            fds.push(PollFd::new(arrivals.as_fd(), PollFlags::POLLIN));
        }
        // Interrupted or not, the loop looks at everything again.
        let _ = ppoll(&mut fds, Some(timespec(span)), None);
    }

    /// The line on a terminal; nothing anywhere else.
    fn show(&self, progress: &ProgressBar) {
        let sent = self.departures.as_ref().map_or(0, Departures::sent);
        let received = self.arrivals.as_ref().map_or(0, Arrivals::received);
        let paused: u64 = self.pfc.pauses().report(now()).pause_ns.iter().sum();
        let paused = Duration::from_nanos(paused);
        progress.set_message(format!("sent {sent}  received {received}  paused {paused:.1?}"));
        progress.tick();
    }

    fn report(
        &mut self,
        link: &Link,
        start: Time,
        ended_by: EndedBy,
    ) -> Result<HostReport, LinkError> {
        let end = now();
        let (pfc, impairments) = self.pfc.report(end);
        let flows_sent = self.departures.as_ref().map(Departures::report).unwrap_or_default();
        let mut socket_drops = self.control.count_drops()?;
        let arrived = match &mut self.arrivals {
            Some(arrivals) => {
                socket_drops += arrivals.count_drops()?;
                arrivals.report()
            }
            None => Arrived::new(Default::default(), 0, None, |_| None),
        };
        Ok(HostReport {
            interface: link.name().to_owned(),
            mac: link.mac().to_string(),
            ended_by,
            duration_ns: end.since(start).0,
            sent: flows_sent.iter().map(|flow| flow.sent).sum(),
            sent_bytes: flows_sent.iter().map(|flow| flow.bytes).sum(),
            refusals: self.departures.as_ref().map_or(0, Departures::refusals),
            socket_drops,
            invalid_mac_control: by_kind(&pfc.invalid),
            pfc,
            impairments,
            flows_sent,
            arrived,
        })
    }
}

/// Takes every MAC control frame that is there, and lets those have their effect that were delayed
/// until now.
fn read_control(control: &mut Inlet, pfc: &mut ImpairedReceiver) -> Result<(), LinkError> {
    while control.receive(|read_at, frame| pfc.receive(read_at, &parse_mac_control(frame)))? > 0 {}
    pfc.advance(now());
    Ok(())
}
