use super::*;
use holdfast_core::drop::DropReason;
use holdfast_core::ids::{PgId, Priority, QueueId};
use holdfast_core::link_errors::LinkError;
use holdfast_shm::counters::{ControlBlock, LinkBlock, PortBlock, SharedBlock, WorkerBlock};
use holdfast_shm::directory::{Directory, PortEntry, ProfileEntry};
use holdfast_shm::layout::Layout;
use holdfast_shm::{BlockWriter, DirectoryWriter, Identity, Segment};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};

const SECOND: u64 = 1_000_000_000;

/// A switch that publishes what a test wants.
struct Switch {
    reader: SegmentReader,
    names: DirectoryWriter,
    done: BlockWriter<ControlBlock>,
    ports: Vec<BlockWriter<PortBlock>>,
    links: Vec<BlockWriter<LinkBlock>>,
    worker: BlockWriter<WorkerBlock>,
    shared: BlockWriter<SharedBlock>,
}

impl Switch {
    fn new(started_ns: u64) -> Self {
        let identity = Identity {
            pid: 7,
            version: "0.1.0".to_owned(),
            started_unix_ns: 1_700_000_000 * SECOND,
            started_ns,
        };
        let mut segment = Segment::new(Layout::new(1).unwrap(), &identity).unwrap();
        let (names, done) = segment.control().unwrap();
        Self {
            reader: SegmentReader::new(segment.file().try_clone_to_owned().unwrap()).unwrap(),
            names,
            done,
            ports: (0..8).map(|n| segment.port(n).unwrap()).collect(),
            links: (0..8).map(|n| segment.link(n).unwrap()).collect(),
            worker: segment.worker(0).unwrap(),
            shared: segment.shared().unwrap(),
        }
    }

    fn name(&mut self, ports: &[Option<&str>]) {
        self.name_since(ports, 0);
    }

    /// Ports that were added at this time.
    fn name_since(&mut self, ports: &[Option<&str>], since_ns: u64) {
        let entry = |name: &str| PortEntry {
            name: name.to_owned(),
            speed_bits_per_second: 1_000_000_000,
            lossless: true,
            since_ns,
        };
        let directory = Directory {
            switch: "lab".to_owned(),
            profile: ProfileEntry {
                name: "veth-lab-1g".to_owned(),
                sha256: "51ab".to_owned(),
                generation: 3,
            },
            pools: vec!["lossless".to_owned(), "lossy".to_owned()],
            ports: ports.iter().map(|name| name.map(entry)).collect(),
        };
        self.names.publish(&directory).unwrap();
    }

    fn page(&self, up: bool, now_ns: u64) -> String {
        page(Some(&self.reader), up, now_ns).unwrap()
    }
}

/// The samples of a page: `name{labels}` to value. Each is there once.
fn samples(page: &str) -> BTreeMap<&str, f64> {
    let mut samples = BTreeMap::new();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let (series, value) = line.rsplit_once(' ').unwrap();
        assert_eq!(samples.insert(series, value.parse().unwrap()), None, "{series} twice");
    }
    samples
}

fn names(page: &str) -> BTreeSet<&str> {
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let names: Vec<&str> = types.map(|line| line.split(' ').next().unwrap()).collect();
    let unique: BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(unique.len(), names.len(), "a family is begun twice: {names:?}");
    unique
}

/// `promtool check metrics`: it must find nothing to say, not even advice.
fn promtool_has_nothing_to_say(page: &str) {
    let mut tool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool is installed by deploy/install.sh --tests");
    tool.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    let output = tool.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success() && said.is_empty(), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn every_series_is_there_from_the_start_at_0() {
    let mut switch = Switch::new(5 * SECOND);
    switch.name(&[Some("h1"), Some("h2")]);
    let page = switch.page(true, 6 * SECOND);
    promtool_has_nothing_to_say(&page);
    let wanted = include_str!("../../../../tests/fixtures/metrics.txt");
    let wanted: BTreeSet<&str> =
        wanted.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
    assert_eq!(names(&page), wanted);
    let samples = samples(&page);
    let count = |name: &str| samples.keys().filter(|series| series.starts_with(name)).count();
    assert_eq!(count("holdfast_port_dropped_frames_total{port=\"h1\""), DropReason::COUNT);
    assert_eq!(count("holdfast_port_received_class_frames_total{port=\"h1\""), 64 + 8);
    assert_eq!(count("holdfast_port_errors_total{port=\"h2\""), LinkError::COUNT);
    assert_eq!(count("holdfast_pg_occupancy_cells{port=\"h2\""), 8 * 3);
    assert_eq!(count("holdfast_pg_threshold_cells{port=\"h2\""), 8 * 4);
    assert_eq!(count("holdfast_queue_occupancy_cells{port=\"h2\""), 8);
    assert_eq!(count("holdfast_pfc_received_frames_total{port=\"h2\""), 8 * 3);
    assert_eq!(count("holdfast_pfc_pause_cause{port=\"h2\""), 8 * 3);
    assert_eq!(count("holdfast_pfc_paused{port=\"h2\""), 8 * 2);
    assert_eq!(samples["holdfast_up"], 1.0);
    assert_eq!(samples["holdfast_port_speed_bytes_per_second{port=\"h1\"}"], 125e6);
    assert_eq!(samples["holdfast_start_time_seconds"], 1_700_000_000.0);
    assert_eq!(samples["holdfast_lossless_violations_total{port=\"h1\"}"], 0.0);
    let profile = "holdfast_profile_info{name=\"veth-lab-1g\",sha256=\"51ab\",generation=\"3\"}";
    assert_eq!(samples[profile], 1.0);
}

#[test]
fn what_is_published_is_what_is_shown() {
    let mut switch = Switch::new(5 * SECOND);
    switch.name(&[Some("h1")]);
    let mut port = PortBlock { written_ns: 7 * SECOND, up: true, ..PortBlock::default() };
    port.received.frames = 3;
    port.transmitted.bytes = (1 << 53) - 1;
    port.dropped.add(DropReason::HeadroomOverflow, 2);
    port.lossless_violations = 2;
    port.peer_deaf = true;
    port.received_dscp.0[26] = 3;
    port.xoff_reaction.below[1] = 4;
    port.xoff_reaction.total = 6_000;
    port.forwarding_latency.below[13] = 2;
    let pg = &mut port.pgs[PgId::new(3).unwrap()];
    (pg.occupancy, pg.watermark, pg.xoff_threshold) = ([36, 4096, 12], [36, 4100, 40], 4096);
    pg.dropped.add(DropReason::HeadroomOverflow, 2);
    let queue = &mut port.queues[QueueId::new(3).unwrap()];
    (queue.marked, queue.ce_passed, queue.mark_skipped) = (5, 6, 7);
    queue.dropped.add(DropReason::Wred, 8);
    let priority = &mut port.priorities[Priority::new(3).unwrap()];
    priority.causes = [true, false, false];
    priority.transmitted.xoff = 9;
    (priority.received.paused_ns, priority.received.paused) = (SECOND / 2, true);
    switch.ports[0].publish(&port);
    switch.worker.publish(&WorkerBlock {
        written_ns: 8 * SECOND,
        busy_millionths: 250_000,
        ..WorkerBlock::default()
    });
    let mut shared = SharedBlock { written_ns: 9 * SECOND, ..SharedBlock::default() };
    (shared.pools[0].lent, shared.headroom_pool.size, shared.fdb_entries) = (4096, 10, 2);
    switch.shared.publish(&shared);
    switch.done.publish(&ControlBlock { applies_accepted: 1, applies_refused: 2 });
    let page = switch.page(true, 10 * SECOND);
    promtool_has_nothing_to_say(&page);
    let samples = samples(&page);
    for (series, value) in [
        ("holdfast_port_received_frames_total{port=\"h1\"}", 3.0),
        ("holdfast_port_transmitted_bytes_total{port=\"h1\"}", 9_007_199_254_740_991.0),
        ("holdfast_port_dropped_frames_total{port=\"h1\",reason=\"headroom_overflow\"}", 2.0),
        ("holdfast_lossless_violations_total{port=\"h1\"}", 2.0),
        ("holdfast_port_peer_deaf{port=\"h1\"}", 1.0),
        ("holdfast_port_received_class_frames_total{port=\"h1\",field=\"dscp\",value=\"26\"}", 3.0),
        ("holdfast_xoff_reaction_seconds_bucket{le=\"0.000001\"}", 0.0),
        ("holdfast_xoff_reaction_seconds_bucket{le=\"0.000002\"}", 4.0),
        ("holdfast_xoff_reaction_seconds_count", 4.0),
        ("holdfast_xoff_reaction_seconds_sum", 0.000_006),
        ("holdfast_forwarding_latency_seconds_bucket{le=\"0.004096\"}", 0.0),
        ("holdfast_forwarding_latency_seconds_bucket{le=\"0.008192\"}", 2.0),
        ("holdfast_pg_occupancy_cells{port=\"h1\",pg=\"3\",segment=\"service\"}", 4096.0),
        ("holdfast_pg_watermark_cells{port=\"h1\",pg=\"3\",segment=\"headroom\"}", 40.0),
        ("holdfast_pg_threshold_cells{port=\"h1\",pg=\"3\",threshold=\"xoff\"}", 4096.0),
        ("holdfast_queue_ecn_marked_frames_total{port=\"h1\",queue=\"3\"}", 5.0),
        ("holdfast_queue_wred_dropped_frames_total{port=\"h1\",queue=\"3\"}", 8.0),
        ("holdfast_pfc_pause_cause{port=\"h1\",priority=\"3\",cause=\"mmu\"}", 1.0),
        ("holdfast_pfc_transmitted_frames_total{port=\"h1\",priority=\"3\",kind=\"xoff\"}", 9.0),
        (
            "holdfast_pfc_paused_seconds_total{port=\"h1\",priority=\"3\",direction=\"received\"}",
            0.5,
        ),
        ("holdfast_worker_busy_ratio{worker=\"0\"}", 0.25),
        ("holdfast_pool_occupancy_cells{pool=\"lossless\"}", 4096.0),
        ("holdfast_pool_occupancy_cells{pool=\"headroom\"}", 0.0),
        ("holdfast_fdb_entries", 2.0),
        ("holdfast_apply_refused_total", 2.0),
        ("holdfast_data_age_seconds", 3.0),
    ] {
        assert_eq!(samples.get(series), Some(&value), "{series}");
    }
}

/// A link's block is found by its port's number, also where ports are gone.
#[test]
fn errors_of_a_link_are_shown_at_its_own_port() {
    let mut switch = Switch::new(0);
    switch.name(&[None, Some("h2"), Some("h3")]);
    for (number, link) in switch.links.iter_mut().enumerate() {
        let mut block = LinkBlock::default();
        block.errors[LinkError::RxCrc as usize] = 10 + number as u64;
        link.publish(&block);
    }
    let page = switch.page(true, SECOND);
    let samples = samples(&page);
    assert_eq!(samples["holdfast_port_errors_total{port=\"h2\",kind=\"rx_crc\"}"], 11.0);
    assert_eq!(samples["holdfast_port_errors_total{port=\"h3\",kind=\"rx_crc\"}"], 12.0);
    assert_eq!(samples["holdfast_port_errors_total{port=\"h3\",kind=\"tx_carrier\"}"], 0.0);
}

#[test]
fn storms_are_counted_and_shown_while_they_last() {
    let mut switch = Switch::new(0);
    switch.name(&[Some("h1")]);
    let mut port = PortBlock::default();
    let queue = &mut port.queues[QueueId::new(3).unwrap()];
    (queue.storms_detected, queue.storms_restored, queue.stormed) = (2, 1, true);
    switch.ports[0].publish(&port);
    let page = switch.page(true, SECOND);
    let samples = samples(&page);
    let of = |name: &str| {
        samples[format!("holdfast_watchdog_{name}{{port=\"h1\",queue=\"3\"}}").as_str()]
    };
    assert_eq!((of("storms_detected_total"), of("storms_restored_total")), (2.0, 1.0));
    assert_eq!(of("stormed"), 1.0);
}

#[test]
fn suspected_deadlocks_are_counted_and_shown_while_they_last() {
    let mut switch = Switch::new(0);
    switch.name(&[Some("h1")]);
    let mut port = PortBlock::default();
    let pg = &mut port.pgs[PgId::new(3).unwrap()];
    (pg.deadlocks_suspected, pg.deadlocks_resolved, pg.suspected) = (3, 2, true);
    switch.ports[0].publish(&port);
    let page = switch.page(true, SECOND);
    let samples = samples(&page);
    let of = |name: &str, pg: u8| {
        samples[format!("holdfast_{name}{{port=\"h1\",pg=\"{pg}\"}}").as_str()]
    };
    assert_eq!((of("deadlocks_suspected_total", 3), of("deadlocks_resolved_total", 3)), (3.0, 2.0));
    assert_eq!((of("deadlock_suspected", 3), of("deadlock_suspected", 0)), (1.0, 0.0));
}

/// Fault 36: labels are identities; a name of any characters is escaped; what is gone vanishes.
#[test]
fn ports_come_and_go_and_leave_no_series_behind() {
    let mut switch = Switch::new(0);
    let series = |switch: &Switch| {
        let page = switch.page(true, SECOND);
        names(&page);
        samples(&page).len()
    };
    switch.name(&[Some("h1"), Some("h2")]);
    let before = series(&switch);
    for cycle in 0..1000 {
        let name = format!("veth{cycle}");
        switch.name(&[Some("h1"), Some("h2"), Some(&name)]);
        let more = series(&switch);
        // A flap changes values only.
        switch.ports[2].publish(&PortBlock { up: cycle % 2 == 0, ..PortBlock::default() });
        assert_eq!((series(&switch), more > before), (more, true));
        switch.name(&[Some("h1"), Some("h2"), None]);
        assert_eq!(series(&switch), before, "after {cycle} cycles");
    }
    switch.name(&[Some("quote\" back\\slash\nline"), Some("ü")]);
    let page = switch.page(true, SECOND);
    promtool_has_nothing_to_say(&page);
    assert!(page.contains("holdfast_port_up{port=\"quote\\\" back\\\\slash\\nline\"} 0"), "{page}");
    assert_eq!(samples(&page).len(), before);
}

/// SPEC 11: when the dataplane is gone the page says so, and how old the rest is.
#[test]
fn a_switch_that_is_gone_is_shown_with_its_age() {
    let mut switch = Switch::new(0);
    switch.name(&[Some("h1")]);
    let mut port = PortBlock { written_ns: 8 * SECOND, ..PortBlock::default() };
    port.received.frames = 3;
    switch.ports[0].publish(&port);
    switch.worker.publish(&WorkerBlock { written_ns: 9 * SECOND, ..WorkerBlock::default() });
    switch.shared.publish(&SharedBlock { written_ns: 9 * SECOND, ..SharedBlock::default() });
    let page = switch.page(false, 100 * SECOND);
    let samples = samples(&page);
    assert_eq!(samples["holdfast_up"], 0.0);
    assert_eq!(samples["holdfast_data_age_seconds"], 92.0);
    assert_eq!(samples["holdfast_port_received_frames_total{port=\"h1\"}"], 3.0);
}

#[test]
fn before_the_first_switch_there_is_only_that() {
    let page = page(None, true, SECOND).unwrap();
    promtool_has_nothing_to_say(&page);
    assert_eq!(samples(&page), BTreeMap::from([("holdfast_up", 0.0)]));
}

/// Fault 35: counters are never less than before but by a restart, which has its own start time.
#[test]
fn a_restart_is_told_by_its_start_time() {
    let mut first = Switch::new(0);
    first.name(&[Some("h1")]);
    let mut second = Switch::new(50 * SECOND);
    second.name(&[Some("h1")]);
    let started = |switch: &Switch| {
        let page = switch.page(true, 60 * SECOND);
        let samples = samples(&page);
        assert!(samples.values().all(|value| *value >= 0.0));
        samples["holdfast_data_age_seconds"]
    };
    assert_eq!((started(&first), started(&second)), (60.0, 10.0));
}

/// A number that is used again: until the new port has published its first block, nothing of the
/// one before is shown as its own.
#[test]
fn a_port_that_was_added_begins_at_0() {
    let mut switch = Switch::new(5 * SECOND);
    switch.name(&[Some("h1")]);
    let mut block = PortBlock { written_ns: 6 * SECOND, ..PortBlock::default() };
    block.received.frames = 77;
    switch.ports[0].publish(&block);
    let (received, start) = (
        "holdfast_port_received_frames_total{port=\"h1\"}",
        "holdfast_port_start_time_seconds{port=\"h1\"}",
    );
    let before = switch.page(true, 6 * SECOND);
    assert_eq!(samples(&before)[received], 77.0);
    assert_eq!(samples(&before)[start], 1_700_000_000.0);
    switch.name_since(&[Some("h1")], 9 * SECOND);
    let added = switch.page(true, 9 * SECOND);
    assert_eq!(samples(&added)[received], 0.0);
    assert_eq!(samples(&added)[start], 1_700_000_004.0);
    switch.ports[0].publish(&PortBlock { written_ns: 10 * SECOND, ..block });
    assert_eq!(samples(&switch.page(true, 10 * SECOND))[received], 77.0);
    // Why it is down: one reason of all.
    let mut link = LinkBlock::default();
    link.down[1] = true;
    switch.links[0].publish(&link);
    let page = switch.page(true, 10 * SECOND);
    let down = "holdfast_port_down{port=\"h1\",reason=";
    assert_eq!(samples(&page)[&*format!("{down}\"netdev_gone\"}}")], 1.0);
    let of_all = samples(&page).into_iter().filter(|(series, _)| series.starts_with(down));
    assert_eq!(of_all.map(|(_, value)| value).sum::<f64>(), 1.0);
}
