use super::*;
use crate::report::lab::{ipv4, port_spec, Lab, LOSSLESS};
use holdfast_core::ids::{PgId, Priority, QueueId};
use holdfast_shm::layout::Layout;
use holdfast_shm::{Identity, SegmentReader};
use std::sync::atomic::Ordering;

struct Rig {
    lab: Lab,
    stats: WorkerStats,
    publication: Publication,
    reader: SegmentReader,
}

fn rig(ports: usize) -> Rig {
    let mut lab = Lab::new(1, ports, port_spec());
    lab.teach();
    let mut segment = Segment::new(Layout::new(1).unwrap(), &Identity::default()).unwrap();
    let ids = (0..ports as u8).filter_map(PortId::new);
    let publication = Publication::new(&mut segment, 0, ids);
    let reader = SegmentReader::new(segment.file().try_clone_to_owned().unwrap()).unwrap();
    Rig { lab, stats: WorkerStats::default(), publication, reader }
}

impl Rig {
    fn turn(&mut self) {
        self.publication.turn(&mut self.lab.workers[0], &self.stats, self.lab.now);
    }

    fn written(&self, port: usize) -> Option<u64> {
        self.reader.port(port).unwrap().map(|block| block.written_ns)
    }
}

#[test]
fn what_a_worker_counts_is_read_by_others() {
    let mut rig = rig(2);
    rig.lab.arrive(0, &ipv4(0, 1, 0, 2, 100));
    rig.lab.steps(2, Nanos::micros(50));
    rig.lab.hold(1, true);
    for _ in 0..40 {
        for _ in 0..30 {
            rig.lab.arrive(0, &ipv4(0, 1, 26, 2, 1000));
        }
        rig.lab.steps(2, Nanos::micros(50));
    }
    rig.stats.steps.store(80, Ordering::Relaxed);
    rig.stats.step_times[2].store(9, Ordering::Relaxed);
    (0..3).for_each(|_| rig.turn());
    let (lab, reader) = (&rig.lab, &rig.reader);
    let block = reader.port(0).unwrap().unwrap();
    let (pg, port) = (lab.pg(0, LOSSLESS), lab.port(0));
    let cells = [pg.guaranteed, pg.service, pg.headroom].map(|cells| u64::from(cells.0));
    let shown = &block.pgs[PgId::new(LOSSLESS).unwrap()];
    assert_eq!((shown.occupancy, shown.xoff), (cells, true));
    assert_eq!((shown.watermark, shown.headroom), (cells, 512), "nothing has left");
    assert_eq!(shown.xoff_threshold, u64::from(pg.xoff_eff.0));
    assert_eq!((shown.resume, shown.limit), (u64::from(pg.resume.0), u64::from(pg.limit.0)));
    assert!(shown.occupancy[2] > 0, "the test reaches Headroom: {:?}", shown.occupancy);
    assert_eq!(
        (block.received, block.dropped),
        (port.counters().received, port.counters().dropped)
    );
    assert_eq!(block.received_dscp, port.counters().received_dscp);
    assert_eq!((block.written_ns, block.up), (lab.now.0, true));
    let pause = &block.priorities[Priority::new(3).unwrap()];
    assert_eq!((pause.causes, pause.transmitted.paused), ([true, false, false], true));
    assert_eq!((pause.transmitted.xoff, pause.transmitted.transitions), (1, 1));
    assert_eq!(block.xoff_reaction.below, port.reaction().below);
    let latency = reader.port(1).unwrap().unwrap().forwarding_latency;
    assert_eq!(latency.below, lab.port(1).latency().below);
    assert_eq!(latency.below.iter().sum::<u64>(), 1, "one frame left and was timed");
    let queue = &reader.port(1).unwrap().unwrap().queues[QueueId::new(3).unwrap()];
    assert_eq!(queue.occupancy, cells.iter().sum::<u64>());
    let shared = reader.shared().unwrap().unwrap();
    assert_eq!((shared.pools[0].lent, shared.pools[0].size), (cells[1], 8_000));
    assert_eq!((shared.egress_pool.size, shared.fdb_entries), (10_000, 2));
    let worker = reader.worker(0).unwrap().unwrap();
    assert_eq!((worker.steps, worker.step_times.below[2], worker.generation), (80, 9, 1));
}

#[test]
fn a_deaf_peer_is_published() {
    let mut rig = rig(2);
    rig.lab.hold(1, true);
    let published = |rig: &mut Rig| {
        let due = rig.publication.due();
        rig.publication.finish_round(&mut rig.lab.workers[0], &rig.stats, due.max(rig.lab.now));
        (0..2).map(|n| rig.reader.port(n).unwrap().unwrap().peer_deaf).collect::<Vec<_>>()
    };
    assert_eq!(published(&mut rig), [false, false]);
    for _ in 0..400 {
        (0..14).for_each(|_| rig.lab.arrive(0, &ipv4(0, 1, 26, 2, 9000)));
        rig.lab.steps(1, Nanos::micros(100));
    }
    assert_eq!(published(&mut rig), [true, false]);
}

#[test]
fn one_block_a_turn_and_a_round_every_ten_milliseconds() {
    let mut rig = rig(2);
    let begin = rig.lab.now.0;
    assert_eq!(rig.publication.due(), Time::default(), "the first round is due at once");
    rig.turn();
    assert_eq!((rig.written(0), rig.written(1)), (Some(begin), None));
    rig.lab.steps(1, Nanos::micros(1));
    rig.turn();
    assert_eq!((rig.written(1), rig.reader.worker(0).unwrap()), (Some(begin + 1_000), None));
    rig.turn();
    assert!(rig.reader.worker(0).unwrap().is_some() && rig.reader.shared().unwrap().is_some());
    assert_eq!(rig.publication.round_began(), Time(begin));
    // Nothing more until the next round.
    let due = rig.publication.due();
    assert_eq!(due, Time(begin + 1_000).after(PUBLISH_EVERY));
    rig.lab.steps(1, Nanos(due.0 - rig.lab.now.0 - 1));
    rig.turn();
    assert_eq!(rig.written(0), Some(begin));
    rig.lab.steps(1, Nanos(1));
    rig.publication.finish_round(&mut rig.lab.workers[0], &rig.stats, rig.lab.now);
    assert_eq!((rig.written(0), rig.written(1)), (Some(due.0), Some(due.0)));
    assert_eq!(rig.publication.round_began(), due);
}

#[test]
fn publishing_allocates_nothing() {
    let mut rig = rig(3);
    let count = allocation_counter::measure(|| {
        for _ in 0..100 {
            rig.lab.now = rig.publication.due();
            (0..4).for_each(|_| rig.turn());
        }
    });
    assert_eq!(count.count_total, 0);
    assert_eq!(rig.written(2), Some(rig.lab.now.0));
}

#[test]
fn the_busy_ratio_is_that_of_the_last_second() {
    let stats = WorkerStats::default();
    let mut window = BusyWindow::default();
    let second = 1_000_000_000;
    stats.busy_ns.store(second / 4, Ordering::Relaxed);
    assert_eq!(window.at(&stats, Time(second)), 250_000);
    stats.busy_ns.store(second, Ordering::Relaxed);
    assert_eq!(window.at(&stats, Time(second + second / 2)), 250_000, "the second isn't over");
    assert_eq!(window.at(&stats, Time(2 * second)), 750_000);
    assert_eq!(window.at(&stats, Time(4 * second)), 0);
}
