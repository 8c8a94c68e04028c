//! The clock that all network namespaces of a machine share, and the wish to end.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use holdfast_host::{Nanos, Time};
use nix::sys::prctl::set_timerslack;
use nix::sys::time::TimeSpec;
use nix::time::{clock_gettime, ClockId};
use signal_hook::consts::{SIGINT, SIGTERM};
use thread_priority::unix::{
    set_thread_priority_and_policy, thread_native_id, RealtimeThreadSchedulePolicy,
    ThreadSchedulePolicy,
};
use thread_priority::ThreadPriority;

/// CLOCK_MONOTONIC as nanoseconds.
pub(crate) fn now() -> Time {
    read(ClockId::CLOCK_MONOTONIC)
}

/// The clock that the kernel stamps received frames with.
pub(crate) fn wall_clock() -> Time {
    read(ClockId::CLOCK_REALTIME)
}

fn read(clock: ClockId) -> Time {
    // Both clocks exist on every kernel; 0 would only mean that nothing is ever late.
    clock_gettime(clock).map_or(Time(0), time_of)
}

/// A kernel time as nanoseconds.
pub(crate) fn time_of(time: TimeSpec) -> Time {
    Time(time.tv_sec().unsigned_abs() * 1_000_000_000 + time.tv_nsec().unsigned_abs())
}

/// A span as the kernel wants it.
pub(crate) fn timespec(span: Nanos) -> TimeSpec {
    let (seconds, rest) = (span.0 / 1_000_000_000, span.0 % 1_000_000_000);
    TimeSpec::new(seconds.min(i64::MAX as u64) as i64, rest as i64)
}

/// The real-time priority of a thread that has to be on time, 0 to 100: below that of the kernel's
/// interrupt threads (50), on which it waits.
const ON_TIME: u8 = 40;

/// Has this thread run before all ordinary ones as soon as it wakes up (SCHED_FIFO); whether it
/// does. It needs CAP_SYS_NICE. A nice value wouldn't do: where
/// sessions are groups of their own it counts within one only.
pub(crate) fn run_first() -> bool {
    let fifo = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let set = |priority| set_thread_priority_and_policy(thread_native_id(), priority, fifo);
    ThreadPriority::try_from(ON_TIME).is_ok_and(|priority| set(priority).is_ok())
}

/// Set by SIGTERM and SIGINT.
#[derive(Clone, Debug)]
pub(crate) struct StopSignal(Arc<AtomicBool>);

impl StopSignal {
    /// From now on the two signals ask for an end instead of killing. Also asks the kernel to be
    /// punctual with this thread's sleeps, on which pacing rests.
    pub(crate) fn listen() -> io::Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT] {
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
        }
        set_timerslack(1000)?;
        Ok(Self(flag))
    }

    /// True once one of them came.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
