//! Publishes ports' counters while others read them: `publish ROUNDS READS`. What
//! `tests/instructions.rs` counts the instructions of, thread by thread.
#![allow(clippy::expect_used)]

use holdfast_shm::counters::PortBlock;
use holdfast_shm::layout::Layout;
use holdfast_shm::{Identity, Segment, SegmentReader};
use std::sync::Barrier;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().expect("number"));
    let mut next = || arguments.next().expect("publish ROUNDS READS");
    let (rounds, reads) = (next(), next());
    let layout = Layout::new(1).expect("one worker");
    let mut segment = Segment::new(layout, &Identity::default()).expect("a memory file");
    let mut writer = segment.port(0).expect("a port");
    let file = segment.file().try_clone_to_owned().expect("a descriptor");
    let begin = Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let reader = SegmentReader::new(file).expect("a segment");
            begin.wait();
            for _ in 0..reads {
                // A copy that was overwritten is as good for this as a whole one.
                std::hint::black_box(reader.port(0).is_ok());
            }
        });
        begin.wait();
        let mut block = PortBlock::default();
        for round in 0..rounds {
            block.written_ns = round;
            writer.publish(&block);
        }
    });
}
