//! Questions and orders from other threads to the workers: each is a barrier (SPEC 11).
//!
//! A worker looks at one flag in each step; where it is set, it runs what waits for it between two
//! steps. So a frame never waits for a lock, and an answer is as fresh as the last step.

use crossbeam::channel::{bounded, unbounded, Receiver, RecvTimeoutError, Sender};
use crossbeam::utils::CachePadded;
use holdfast_core::sleep::SleepFlag;
use holdfast_xsk::{Bell, XskError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use thiserror::Error;

/// How long a worker may take to answer before the call fails by its name (SPEC 11).
pub const PATIENCE: Duration = Duration::from_secs(1);

type Order<W> = Box<dyn FnOnce(&mut W) + Send>;

/// A worker that didn't answer in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("worker {worker} didn't answer within {}ms", PATIENCE.as_millis())]
pub struct WorkerSilent {
    /// Which one.
    pub worker: usize,
}

/// What a worker thread and those who want something of it share.
pub struct Doorbell {
    /// Something waits in the mailbox.
    waiting: CachePadded<AtomicBool>,
    /// Whether the worker must be rung for.
    asleep: CachePadded<SleepFlag>,
    bell: Bell,
}

impl Doorbell {
    fn new() -> Result<Self, XskError> {
        Ok(Self {
            waiting: CachePadded::new(AtomicBool::new(false)),
            asleep: CachePadded::new(SleepFlag::new()),
            bell: Bell::new()?,
        })
    }

    /// Wakes the worker if it sleeps. What it shall find was written before.
    pub fn ring_if_asleep(&self) {
        if self.asleep.must_ring() {
            self.bell.ring();
        }
    }

    /// The worker will sleep, unless it finds work when it looks once more after this.
    pub fn announce_sleep(&self) {
        self.asleep.announce();
    }

    /// The worker is awake.
    pub fn awake(&self) {
        self.asleep.awake();
        self.bell.clear();
    }

    /// Whether something waits in the mailbox.
    pub fn mail_waits(&self) -> bool {
        self.waiting.load(Ordering::Acquire)
    }

    /// What to wait for in poll.
    pub const fn bell(&self) -> &Bell {
        &self.bell
    }
}

/// The worker's end of its mailbox.
pub struct Mailbox<W> {
    orders: Receiver<Order<W>>,
    door: Arc<Doorbell>,
}

impl<W> Mailbox<W> {
    /// Runs what waits; cheap where nothing does.
    pub fn serve(&self, worker: &mut W) {
        if !self.door.mail_waits() {
            return;
        }
        self.door.waiting.store(false, Ordering::Release);
        while let Ok(order) = self.orders.try_recv() {
            order(worker);
        }
    }

    /// The door of this worker.
    pub const fn door(&self) -> &Arc<Doorbell> {
        &self.door
    }
}

/// A worker that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("worker {worker} has ended")]
pub struct WorkerEnded {
    /// Which one.
    pub worker: usize,
}

/// The other end of all mailboxes, for any thread that wants something of the workers.
pub struct Workers<W> {
    boxes: Vec<(Sender<Order<W>>, Arc<Doorbell>)>,
}

impl<W> Clone for Workers<W> {
    fn clone(&self) -> Self {
        Self { boxes: self.boxes.clone() }
    }
}

impl<W: 'static> Workers<W> {
    /// Mailboxes for `count` workers.
    ///
    /// # Errors
    /// The system's, where it gives no eventfd.
    pub fn new(count: usize) -> Result<(Self, Vec<Mailbox<W>>), XskError> {
        let mut boxes = Vec::new();
        let mut ends = Vec::new();
        for _ in 0..count {
            let (sender, orders) = unbounded();
            let door = Arc::new(Doorbell::new()?);
            boxes.push((sender, Arc::clone(&door)));
            ends.push(Mailbox { orders, door });
        }
        Ok((Self { boxes }, ends))
    }

    /// How many workers there are.
    pub fn count(&self) -> usize {
        self.boxes.len()
    }

    /// The doors of all workers, by number.
    pub fn doors(&self) -> Vec<Arc<Doorbell>> {
        self.boxes.iter().map(|(_, door)| Arc::clone(door)).collect()
    }

    /// Has every worker run `order` between two of its steps and returns all results in the order
    /// of the workers, when all have done it.
    ///
    /// # Errors
    /// [`WorkerSilent`] for the first that doesn't answer in time. The others may have done it.
    pub fn ask_all<T, F>(&self, order: F) -> Result<Vec<T>, WorkerSilent>
    where
        T: Send + 'static,
        F: Fn(&mut W) -> T + Send + Sync + 'static,
    {
        let order = Arc::new(order);
        let mut answers = Vec::new();
        for (sender, door) in &self.boxes {
            let (reply, answer) = bounded(1);
            let order = Arc::clone(&order);
            post(sender, door, move |worker| {
                // The asker may have given up.
                let _ = reply.send(order(worker));
            });
            answers.push(answer);
        }
        let deadline = Instant::now() + PATIENCE;
        answers
            .iter()
            .enumerate()
            .map(|(worker, answer)| {
                answer
                    .recv_deadline(deadline)
                    .map_err(|_: RecvTimeoutError| WorkerSilent { worker })
            })
            .collect()
    }

    /// Has one worker run `order` between two of its steps, and waits for as long as it takes: what
    /// must not be done half, by a thread that nobody waits for.
    ///
    /// # Errors
    /// [`WorkerEnded`], or if there is no such worker; the order is not run then.
    pub fn ask_one<T, F>(&self, worker: usize, order: F) -> Result<T, WorkerEnded>
    where
        T: Send + 'static,
        F: FnOnce(&mut W) -> T + Send + 'static,
    {
        let ended = WorkerEnded { worker };
        let (sender, door) = self.boxes.get(worker).ok_or(ended)?;
        let (reply, answer) = bounded(1);
        post(sender, door, move |worker| {
            // The asker waits.
            let _ = reply.send(order(worker));
        });
        answer.recv().map_err(|_| ended)
    }
}

fn post<W>(sender: &Sender<Order<W>>, door: &Doorbell, run: impl FnOnce(&mut W) + Send + 'static) {
    // A worker that has ended drops the order.
    let _ = sender.send(Box::new(run));
    door.waiting.store(true, Ordering::Release);
    door.ring_if_asleep();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_worker_answers_and_a_silent_one_is_named() {
        let (workers, mut boxes) = Workers::<u32>::new(2).unwrap();
        let second = boxes.pop().unwrap();
        let first = boxes.pop().unwrap();
        let serve = |mailbox: Mailbox<u32>, mut state: u32| {
            std::thread::spawn(move || {
                for _ in 0..2_000 {
                    mailbox.serve(&mut state);
                    std::thread::sleep(Duration::from_millis(1));
                }
            })
        };
        let _first = serve(first, 10);
        let quiet = second;
        assert_eq!(workers.ask_all(|state| *state), Err(WorkerSilent { worker: 1 }));
        let _second = serve(quiet, 20);
        assert_eq!(workers.ask_all(|state| *state + 1), Ok(vec![11, 21]));
    }
}
