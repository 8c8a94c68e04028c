//! Deficit weighted round robin over a port's weighted queues (Shreedhar and Varghese, 1995).
//!
//! A queue's deficit is the bytes it may still send in this round. Rounds in which no queue can
//! send are skipped by one division a queue, so a quantum may be as small as one likes: shares
//! stay fine-grained and nothing is polled.

use crate::ids::{PerQueue, QueueId};
use crate::units::FrameLen;

/// Fraction bits of a byte in deficits: the largest weight is 65535 times the smallest.
const FRACTION: u32 = 14;
/// What the heaviest queue gets in one round: 16 KiB, more than any frame.
const ROUND: i32 = 1 << (14 + FRACTION);

/// Deficits and the place in the round. Strict queues have quantum 0 and are never chosen.
#[derive(Debug)]
pub(super) struct Dwrr {
    weighted: u8,
    current: usize,
    quantum: PerQueue<i32>,
    deficit: PerQueue<i32>,
}

const fn cost(len: FrameLen) -> i32 {
    (len.0 as i32) << FRACTION
}

impl Dwrr {
    /// No queue is weighted yet.
    pub(super) fn new() -> Self {
        Self { weighted: 0, current: 0, quantum: PerQueue::default(), deficit: PerQueue::default() }
    }

    /// Takes over weights; 0 takes a queue out.
    pub(super) fn adopt(&mut self, weights: &PerQueue<u16>) {
        let heaviest = i64::from(weights.0.iter().copied().max().unwrap_or(0).max(1));
        self.weighted = 0;
        for (queue, weight) in weights.iter() {
            self.weighted |= u8::from(*weight > 0) << queue.index();
            self.quantum[queue] = (i64::from(*weight) * i64::from(ROUND) / heaviest) as i32;
            if *weight == 0 {
                self.deficit[queue] = 0;
            }
        }
    }

    /// The weighted queue of `ready` whose turn it is.
    #[inline]
    pub(super) fn pick(
        &mut self,
        ready: u8,
        head_len: impl Fn(QueueId) -> FrameLen,
    ) -> Option<QueueId> {
        let set = ready & self.weighted;
        if set & set.wrapping_sub(1) == 0 {
            return self.pick_only(set, head_len);
        }
        if set >> self.current & 1 == 1 {
            let current = QueueId::from_bits(self.current as u8);
            if self.deficit[current] >= cost(head_len(current)) {
                return Some(current);
            }
        }
        self.turn(set, &head_len).or_else(|| {
            self.skip_rounds(set, &head_len);
            self.turn(set, &head_len)
        })
    }

    /// A queue alone gets all the rounds it needs, each of them whole: the others may only be held
    /// back by their `max_rate` for a moment, and if this one had but a frame for each such moment,
    /// they would be served at that rate whatever their weight is.
    fn pick_only(&mut self, set: u8, head_len: impl Fn(QueueId) -> FrameLen) -> Option<QueueId> {
        let only = QueueId::new(set.trailing_zeros() as u8)?;
        let need = cost(head_len(only));
        if self.deficit[only] < need {
            self.deficit[only] = need.max(self.deficit[only] + self.quantum[only]);
        }
        self.current = only.index();
        Some(only)
    }

    /// One round, from the queue after the current one up to the current one: each gets its
    /// quantum, the first that can send is the answer.
    fn turn(&mut self, set: u8, head_len: impl Fn(QueueId) -> FrameLen) -> Option<QueueId> {
        let first = self.current + 1;
        let mut ahead = set.rotate_right(first as u32);
        while ahead != 0 {
            let queue = QueueId::from_bits((first + ahead.trailing_zeros() as usize) as u8);
            ahead &= ahead - 1;
            let need = cost(head_len(queue));
            // A queue that was stopped with a large deficit doesn't save it up.
            self.deficit[queue] = self.deficit[queue].min(need) + self.quantum[queue];
            if self.deficit[queue] >= need {
                self.current = queue.index();
                return Some(queue);
            }
        }
        None
    }

    /// Gives every queue the rounds that would pass before the last one in which none can send.
    fn skip_rounds(&mut self, set: u8, head_len: impl Fn(QueueId) -> FrameLen) {
        let members = || QueueId::all().filter(|queue| set >> queue.index() & 1 == 1);
        let rounds = members()
            .map(|queue| {
                let missing = cost(head_len(queue)) - self.deficit[queue];
                missing.max(1).unsigned_abs().div_ceil(self.quantum[queue].max(1).unsigned_abs())
            })
            .min()
            .unwrap_or(1);
        for queue in members() {
            self.deficit[queue] += self.quantum[queue] * (rounds as i32 - 1);
        }
    }

    /// A frame of `queue` was sent. Sent outside its turn (for its `min_rate`), it counts against
    /// later turns, at most one round of them.
    #[inline]
    pub(super) fn charge(&mut self, queue: QueueId, len: FrameLen) {
        self.deficit[queue] = (self.deficit[queue] - cost(len)).max(-ROUND);
    }

    /// An empty queue keeps no deficit.
    #[inline]
    pub(super) fn emptied(&mut self, queue: QueueId) {
        self.deficit[queue] = self.deficit[queue].min(0);
    }
}
