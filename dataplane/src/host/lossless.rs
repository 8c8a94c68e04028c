//! How long a port has been without lossless traffic, from a count that its worker leaves and the
//! control thread looks at once a second: no frame is stamped for it.

use holdfast_core::counters::PortCounters;
use holdfast_core::ids::Cos;
use holdfast_core::profile::PortSpec;
use holdfast_core::units::{Nanos, Time};

/// Frames of lossless classes that a port has taken in or sent.
pub(crate) fn lossless_frames(counters: &PortCounters, spec: &PortSpec) -> u64 {
    let lossless = |cos: &Cos| spec.pgs[spec.maps.cos_to_pg[*cos]].lossless;
    let pgs = spec.pgs.iter().filter(|(_, account)| account.lossless);
    let received = pgs.map(|(pg, _)| counters.pgs[pg].admitted.frames).sum::<u64>();
    let queues = counters.queues.iter().filter(|(queue, _)| {
        Cos::all().filter(lossless).any(|cos| spec.maps.cos_to_queue[cos] == *queue)
    });
    received + queues.map(|(_, counters)| counters.transmitted.frames).sum::<u64>()
}

/// When the count of one port was last seen to move.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastLossless {
    frames: u64,
    at: Time,
}

impl LastLossless {
    /// Nothing has come since the start of the switch.
    pub(crate) const fn since(start: Time) -> Self {
        Self { frames: 0, at: start }
    }

    /// Looks at the count. A change of profile may also lower it: that counts as traffic.
    pub(crate) fn look(&mut self, frames: u64, now: Time) {
        if frames != self.frames {
            *self = Self { frames, at: now };
        }
    }

    /// How long it hasn't moved.
    pub(crate) const fn idle(&self, now: Time) -> Nanos {
        now.since(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::lab::{pg, port_spec, LOSSLESS};
    use holdfast_core::ids::QueueId;

    #[test]
    fn an_hour_counts_from_the_last_lossless_frame() {
        let hours = |n: u64| Time(n * 3_600_000_000_000);
        let mut last = LastLossless::since(hours(1));
        assert_eq!(last.idle(hours(3)).0, hours(2).0, "none since the start");
        last.look(7, hours(3));
        last.look(7, hours(4));
        assert_eq!(last.idle(hours(5)).0, hours(2).0, "none since the last one");
        last.look(8, hours(5));
        assert_eq!(last.idle(hours(5)), Nanos(0));
    }

    #[test]
    fn frames_of_lossless_classes_count_both_ways_and_others_never() {
        let spec = port_spec();
        let mut counters = PortCounters::default();
        let cos = Cos::all().find(|cos| spec.maps.cos_to_pg[*cos] == pg(LOSSLESS)).unwrap();
        let queue = spec.maps.cos_to_queue[cos];
        let other = QueueId::all().find(|other| *other != queue).unwrap();
        counters.pgs[pg(0)].admitted.frames = 100;
        counters.queues[other].transmitted.frames = 100;
        assert_eq!(lossless_frames(&counters, &spec), 0);
        counters.pgs[pg(LOSSLESS)].admitted.frames = 2;
        counters.queues[queue].transmitted.frames = 3;
        assert_eq!(lossless_frames(&counters, &spec), 5);
    }
}
