//! A block, explored: whatever a writer and a reader do at once, a copy that the reader takes for
//! whole is one that was published.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p holdfast-shm --release --test loom_block`
#![cfg(loom)]
#![allow(clippy::unwrap_used)] // A failed set-up fails the test.

use holdfast_shm::block::{block_words, publish, read, Read};
use loom::sync::atomic::AtomicU64;
use loom::sync::Arc;

const WORDS: usize = 2;

fn block() -> Vec<AtomicU64> {
    (0..block_words(WORDS)).map(|_| AtomicU64::new(0)).collect()
}

/// What came of each reading, counted over all executions.
type Outcomes = std::sync::Mutex<[u64; 3]>;

fn take_twice(shared: &[AtomicU64], outcomes: &Outcomes) {
    let mut last = 0;
    for _ in 0..2 {
        let mut copy = [0; WORDS];
        let read = read(shared, &mut copy);
        if let Ok(mut outcomes) = outcomes.lock() {
            outcomes[read as usize] += 1;
        }
        if read == Read::Whole {
            assert_eq!(copy[0], copy[1], "a copy of two halves");
            assert!(copy[0] >= last, "{} after {last}", copy[0]);
            last = copy[0];
        }
    }
}

/// The writer publishes (1, 1), (2, 2), (3, 3): the third overwrites the place of the first.
#[test]
fn a_copy_is_whole_and_never_older_than_one_seen_before() {
    let outcomes = std::sync::Arc::new(std::sync::Mutex::new([0u64; 3]));
    let seen = std::sync::Arc::clone(&outcomes);
    loom::model(move || {
        let shared = Arc::new(block());
        let reader = {
            let (shared, outcomes) = (Arc::clone(&shared), std::sync::Arc::clone(&outcomes));
            loom::thread::spawn(move || take_twice(&shared, &outcomes))
        };
        for value in 1..=3 {
            publish(&shared, WORDS, |place| {
                place.push(value);
                place.push(value);
            });
        }
        reader.join().unwrap();
        let mut copy = [0; WORDS];
        assert_eq!((read(&shared, &mut copy), copy), (Read::Whole, [3; WORDS]));
    });
    let outcomes = seen.lock().unwrap();
    println!("whole, empty, overwritten: {outcomes:?}");
    assert!(outcomes.iter().all(|count| *count > 0), "some outcome never came: {outcomes:?}");
}
