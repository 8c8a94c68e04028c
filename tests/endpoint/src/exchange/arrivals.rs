//! The receiving half: checks, latencies, and when there has been enough.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};

use holdfast_host::{FlowKey, Nanos, Received, Receiver, Time};
use holdfast_wire::is_mac_control;

use crate::cli::ArrivalArgs;
use crate::latency::Latency;
use crate::link::{Inlet, Link, LinkError, DATA_BURST, EVERY_PROTOCOL};
use crate::report::{Arrived, EndedBy};

/// A receiver with its socket.
#[derive(Debug)]
pub(super) struct Arrivals {
    inlet: Inlet,
    receiver: Receiver,
    latency: Latency,
    latencies: BTreeMap<FlowKey, Latency>,
    /// Times of the first and of the last data frame.
    span: Option<(Time, Time)>,
    expect: Option<u64>,
    until_idle: Option<Nanos>,
}

impl Arrivals {
    /// Opens the socket.
    pub(super) fn open(link: &Link, args: &ArrivalArgs) -> Result<Self, LinkError> {
        // The kernel doubles the size asked for, which must stay below 2^31.
        let inlet = Inlet::open(link, EVERY_PROTOCOL, DATA_BURST, (args.buffer as usize) << 20)?;
        Ok(Self {
            inlet,
            receiver: Receiver::new(args.first_psn.0),
            latency: Latency::new(),
            latencies: BTreeMap::new(),
            span: None,
            expect: args.expect,
            until_idle: args.until_idle.map(|ms| Nanos(ms.saturating_mul(1_000_000))),
        })
    }

    /// Takes a burst of frames; returns how many.
    pub(super) fn receive(&mut self) -> Result<usize, LinkError> {
        let Self { inlet, receiver, latency, latencies, span, .. } = self;
        inlet.receive(|arrived_at, frame| {
            // MAC control has a socket of its own.
            if is_mac_control(frame) {
                return;
            }
            if let Received::Data { key, age } = receiver.receive(arrived_at, frame) {
                *span = Some((span.map_or(arrived_at, |(first, _)| first), arrived_at));
                if let Some(age) = age {
                    latency.record(age);
                    latencies.entry(key).or_insert_with(Latency::new).record(age);
                }
            }
        })
    }

    /// True if it ends by itself some time.
    pub(super) fn has_end(&self) -> bool {
        self.expect.is_some() || self.until_idle.is_some()
    }

    /// Why it is over, if it is.
    pub(super) fn ended(&self, time: Time) -> Option<EndedBy> {
        if self.expect.is_some_and(|frames| self.receiver.data_frames() >= frames) {
            return Some(EndedBy::Count);
        }
        let (_, last) = self.span?;
        let idle = self.until_idle.is_some_and(|idle| time.since(last) >= idle);
        idle.then_some(EndedBy::Idle)
    }

    /// Data frames so far.
    pub(super) fn received(&self) -> u64 {
        self.receiver.data_frames()
    }

    /// Frames that found the socket buffer full.
    pub(super) fn count_drops(&mut self) -> Result<u64, LinkError> {
        self.inlet.count_drops()
    }

    /// Everything that arrived.
    pub(super) fn report(&self) -> Arrived {
        let span = self.span.map_or(Nanos(0), |(first, last)| last.since(first));
        Arrived::new(self.receiver.report(), span.0, self.latency.report(), |flow| {
            let key = FlowKey { src_mac: flow.src_mac, qp: flow.qp };
            self.latencies.get(&key).and_then(Latency::report)
        })
    }
}

impl AsFd for Arrivals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inlet.as_fd()
    }
}
