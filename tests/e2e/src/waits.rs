//! How long the machine let the switch's workers wait for a core: whoever claims something "while
//! the worker runs" has to know whether it did.

use crate::{Lab, LabError};
use holdfast_api::message::{Call, HostReply, PortFilter};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{sleep, JoinHandle};
use std::time::Duration;

/// How often is looked. A wait counts when it ends, so none is split.
const SLICE: Duration = Duration::from_millis(10);

/// A look at the workers of switch `sw` that goes on beside a test.
#[derive(Debug)]
pub struct Waits {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Duration>,
}

impl Waits {
    /// Begins to look.
    ///
    /// # Errors
    /// [`LabError::Control`].
    pub fn watch(lab: &mut Lab) -> Result<Self, LabError> {
        let host: HostReply = lab.switch("sw")?.call(Call::ShowHost(PortFilter::default()))?;
        let threads: Vec<u32> = host.workers.iter().filter_map(|worker| worker.thread).collect();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let look = move || {
            let mut before: Vec<u64> = threads.iter().map(|thread| waited(*thread)).collect();
            let mut longest = 0;
            loop {
                let last = stopped.load(Ordering::Relaxed);
                for (thread, before) in threads.iter().zip(&mut before) {
                    let now = waited(*thread);
                    longest = longest.max(now.saturating_sub(*before));
                    *before = now;
                }
                if last {
                    return Duration::from_nanos(longest);
                }
                sleep(SLICE);
            }
        };
        Ok(Self { stop, thread: std::thread::spawn(look) })
    }

    /// The longest that a worker has waited, at most: all waits of a slice count as one. For ever
    /// if that couldn't be seen.
    pub fn longest(self) -> Duration {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or(Duration::MAX)
    }
}

/// What a thread has waited for a core in all its life, ns (proc_pid_schedstat: the second number).
fn waited(thread: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{thread}/schedstat")).unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(u64::MAX)
}
