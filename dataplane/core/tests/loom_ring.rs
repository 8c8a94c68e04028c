//! The hand-over ring and the sleep of its reader, explored: every interleaving of their atomics,
//! and every value that the memory model lets a load return (DESIGN 5).
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p holdfast-core --release --test loom_ring`
#![cfg(loom)]
#![allow(clippy::unwrap_used, clippy::expect_used)] // A failed set-up fails the test.

mod explored;

use explored::{explore, finds};
use holdfast_core::explorer::Fault;
use holdfast_core::ring::{spsc, Consumer};
use holdfast_core::sleep::SleepFlag;
use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use loom::sync::Arc;
use loom::thread;

/// Words of a run through a ring of two places.
const WORDS: u64 = 4;

/// A producer fills the ring as far as it goes, a consumer takes what it sees. What is behind a
/// word (a frame's memory, here one atomic each) was written before the word was put in.
fn hand_over(tries: usize) {
    let frames: Arc<Vec<AtomicU64>> = Arc::new((0..WORDS).map(|_| AtomicU64::new(0)).collect());
    let (mut tx, mut rx) = spsc(2);
    let consumer = {
        let frames = Arc::clone(&frames);
        thread::spawn(move || {
            let taken: Vec<u64> = (0..tries).filter_map(|_| take(&mut rx, &frames)).collect();
            (rx, taken)
        })
    };
    let mut put = 0;
    for number in 0..WORDS {
        frames[number as usize].store(number + 1, Ordering::Relaxed);
        if tx.push(number + 1).is_err() {
            break;
        }
        put += 1;
    }
    let (mut rx, mut taken) = consumer.join().unwrap();
    while let Some(word) = take(&mut rx, &frames) {
        taken.push(word);
    }
    let expected: Vec<u64> = (1..=put).collect();
    assert_eq!(taken, expected, "words are lost, doubled or out of order");
    assert!(put >= 2 && rx.is_empty());
    // There is room again, whatever was refused before.
    assert_eq!(tx.push(9), Ok(()));
    assert_eq!(rx.pop(), Some(9));
}

fn take(rx: &mut Consumer, frames: &[AtomicU64]) -> Option<u64> {
    let word = rx.pop()?;
    assert!((1..=WORDS).contains(&word), "a word that nobody put in: {word}");
    let frame = frames[word as usize - 1].load(Ordering::Relaxed);
    assert_eq!(frame, word, "a word came before what is behind it");
    Some(word)
}

#[test]
fn words_come_out_in_order_with_what_is_behind_them() {
    explore("ring", None, || hand_over(3));
}

#[test]
fn finds_a_relaxed_publish() {
    finds(Fault::RelaxedPublish, "a word", || {
        explore("ring", None, || hand_over(3));
    });
}

/// A worker, its flag, what stands for its eventfd, and where others leave work for it.
struct Sleeper {
    flag: SleepFlag,
    bell: AtomicBool,
    mail: AtomicBool,
}

impl Sleeper {
    fn ring_if_asleep(&self) {
        if self.flag.must_ring() {
            self.bell.store(true, Ordering::Release);
        }
    }

    /// What the worker has found when it looks at both places.
    fn look(&self, rx: &mut Consumer) -> u32 {
        let mail = self.mail.load(Ordering::Acquire);
        if mail {
            self.mail.store(false, Ordering::Relaxed);
        }
        u32::from(mail) + u32::from(rx.pop().is_some())
    }
}

/// A worker goes to sleep, may be woken by its timer, work and go to sleep again, while another one
/// hands it a frame over, or the control thread leaves it mail: who sleeps on work is rung for.
fn sleep_and_wake(naps: u32, by_mail: bool) {
    let sleeper = Arc::new(Sleeper {
        flag: SleepFlag::new(),
        bell: AtomicBool::new(false),
        mail: AtomicBool::new(false),
    });
    let (mut tx, mut rx) = spsc(2);
    let waker = {
        let sleeper = Arc::clone(&sleeper);
        thread::spawn(move || {
            if by_mail {
                sleeper.mail.store(true, Ordering::Release);
            } else {
                tx.push(1).unwrap();
            }
            sleeper.ring_if_asleep();
        })
    };
    let (mut found, mut asleep) = (0, false);
    for nap in 0..naps {
        if nap > 0 {
            // The timer, or a ring for what was seen meanwhile: awake, and a step.
            sleeper.flag.awake();
            sleeper.bell.swap(false, Ordering::AcqRel);
            found += sleeper.look(&mut rx);
        }
        sleeper.flag.announce();
        let came = sleeper.look(&mut rx);
        found += came;
        asleep = came == 0;
    }
    if !asleep {
        sleeper.flag.awake();
    }
    waker.join().unwrap();
    let rung = sleeper.bell.load(Ordering::Acquire);
    assert!(found == 1 || !asleep || rung, "asleep on work that nobody rings for");
    // What it finds when it is rung for, or awake.
    found += sleeper.look(&mut rx);
    assert_eq!(found, 1, "the work is lost or doubled");
}

fn naps() {
    for (naps, by_mail) in [(1, false), (1, true), (2, false), (2, true)] {
        let name = format!("bell, {naps} naps, mail {by_mail}");
        explore(&name, None, move || sleep_and_wake(naps, by_mail));
    }
}

#[test]
fn nobody_sleeps_on_work() {
    naps();
}

#[test]
fn finds_a_missing_fence() {
    finds(Fault::MissingFence, "asleep on work", naps);
}
