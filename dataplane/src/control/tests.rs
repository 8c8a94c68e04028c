use super::server::{IDLE_LIMIT, MAX_CLIENTS};
use super::*;
use crate::host::Looker;
use crate::ports::{KeeperOrder, PortCall};
use crate::report::lab::{self, ipv4, station, Rig, LOSSLESS};
use crate::worker_thread::WorkerStats;
use crossbeam::channel::{bounded, unbounded, Receiver, Sender};
use holdfast_api::amount::{CellAmount, XoffAmount};
use holdfast_api::client::{Client, ClientError};
use holdfast_api::log_lines::Throttle;
use holdfast_api::message::*;
use holdfast_core::memory::MemoryPort;
use holdfast_core::units::Cells;
use holdfast_plan::HeadroomTerm;
use holdfast_shm::layout::Layout;
use holdfast_shm::Identity;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

mod apply;
mod clients;
mod host;
mod journal;
mod late;
mod ports;
mod preflight;
mod segment;
mod waits;

/// A running switch in memory with its control socket.
struct Desk {
    rig: Rig,
    control: Option<Control>,
    folder: tempfile::TempDir,
    /// What the workers' threads keep up to date.
    stats: Vec<Arc<WorkerStats>>,
    /// The link watcher's end.
    links: Sender<LinkNews>,
    /// The keeper of ports' end, and what it is to do.
    keeper: Sender<PortCall>,
    ordered: Receiver<KeeperOrder>,
}

impl Desk {
    fn new(workers: usize, ports: usize) -> Self {
        Self::with_terms(workers, ports, Vec::new())
    }

    /// Of a profile whose formula asks this.
    fn with_terms(workers: usize, ports: usize, terms: Vec<HeadroomTerm>) -> Self {
        let (rig, asking, mut board) = Rig::start(workers, ports);
        board.headroom_terms = terms;
        let folder = tempfile::tempdir().unwrap();
        let stats = board.threads.iter().map(|(stats, _)| Arc::clone(stats)).collect();
        let (links, news) = bounded(4);
        let ((keeper, calls), (orders, ordered)) = (unbounded(), unbounded());
        let segment =
            holdfast_shm::Segment::new(Layout::new(workers).unwrap(), &Identity::default())
                .unwrap();
        let mut console = Console::<MemoryPort> {
            published: published::Published::new(segment, &board),
            below: super::host::Below::new(
                Looker::with(host::look, crate::mailbox::PATIENCE),
                ports,
                board.started,
            ),
            generation: board.profile.generation(),
            board,
            workers: asking,
            rings: lab::rings,
            clock: lab::clock,
            applying: apply::applying(ports, folder.path()),
            refusals: Throttle::new(),
            witness: Witness::new(news),
            desk: PortDesk::new(calls, orders, ports::switch(ports)),
        };
        console.record_start(vec!["it was kept".to_owned()]);
        let listener = Listener::bind(folder.path().join("lab.sock")).unwrap();
        let control = Some(start(console, listener).unwrap());
        Self { rig, control, folder, stats, links, keeper, ordered }
    }

    fn socket(&self) -> std::path::PathBuf {
        self.folder.path().join("lab.sock")
    }

    fn client(&self) -> Client {
        Client::connect(&self.socket()).unwrap()
    }

    fn stream(&self) -> UnixStream {
        connect(&self.socket())
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        if let Some(control) = self.control.take() {
            control.stop();
        }
    }
}

fn connect(path: &Path) -> UnixStream {
    let stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

fn ping(client: &mut Client) -> PongReply {
    client.call(Call::Ping(Ping::default())).unwrap()
}

fn refused<T: std::fmt::Debug>(result: Result<T, ClientError>) -> ErrorBody {
    match result {
        Err(ClientError::Refused(body)) => body,
        other => panic!("{other:?}"),
    }
}

fn answer(stream: &UnixStream) -> ErrorBody {
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    match serde_json::from_str::<Response>(&line).unwrap().outcome {
        Outcome::Error(body) => body,
        Outcome::Ok(value) => panic!("{value}"),
    }
}

fn pg_3(client: &mut Client) -> PgStatus {
    let filter = PgFilter { port: Some("p0".to_owned()), pg: Some(LOSSLESS) };
    let mut reply: PgReply = client.call(Call::ShowPg(filter)).unwrap();
    reply.pgs.remove(0)
}

fn only(port: &str) -> PortFilter {
    PortFilter { port: Some(port.to_owned()) }
}

fn port_name(port: &str) -> PortName {
    PortName { port: port.to_owned() }
}

/// SplitMix64: the same bytes in every run.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ (z >> 27)
}

#[test]
fn every_read_has_an_answer() {
    let desk = Desk::new(2, 4);
    let client = &mut desk.client();
    let ports: PortsReply = client.call(Call::ShowPorts(PortFilter::default())).unwrap();
    assert_eq!((ports.ports.len(), ports.workers.len()), (4, 2));
    assert_eq!(ports.ports[1].worker, 1);
    assert_eq!(ports.workers[1].ports, ["p1", "p3"]);
    let ports: PortsReply = client.call(Call::ShowPorts(only("p2"))).unwrap();
    assert_eq!(ports.ports.len(), 1);
    assert_eq!(ports.ports[0].state, PortState::Up);
    let classes: ClassifyReply = client.call(Call::ShowClassify(only("p3"))).unwrap();
    assert_eq!(classes.ports[0].dscp_frames.len(), 64);
    let pgs: PgReply = client.call(Call::ShowPg(PgFilter::default())).unwrap();
    assert_eq!(pgs.pgs.len(), 32);
    let queues: QueueReply = client.call(Call::ShowQueue(QueueFilter::default())).unwrap();
    assert_eq!(queues.queues.len(), 32);
    let pfc: PfcReply = client.call(Call::ShowPfc(PortFilter::default())).unwrap();
    assert_eq!(pfc.ports[0].priorities.len(), 8);
    let ecn: EcnReply = client.call(Call::ShowEcn(QueueFilter::default())).unwrap();
    assert_eq!(ecn.queues.len(), 32);
    let buffer: BufferReply = client.call(Call::ShowBuffer(ShowBuffer::default())).unwrap();
    assert_eq!(buffer.pools.len(), 2);
    let parts = buffer.ingress;
    let sum = parts.guaranteed + parts.headroom + parts.pools + parts.left_over;
    assert_eq!(sum, buffer.total);
    let fdb: FdbReply = client.call(Call::ShowFdb(ShowFdb::default())).unwrap();
    assert_eq!((fdb.entries.len(), fdb.next), (4, None));
    let profile: ProfileReply = client.call(Call::ShowProfile(ShowProfile::default())).unwrap();
    assert_eq!((profile.generation, profile.ports.len()), (1, 4));
    let marks: WatermarkReply =
        client.call(Call::WatermarkShow(WatermarkFilter::default())).unwrap();
    assert_eq!((marks.pgs.len(), marks.queues.len(), marks.pools.len()), (32, 32, 2));
    let trace: TraceReply = client.call(Call::Trace(Trace::default())).unwrap();
    assert_eq!(trace.next.len(), 2);
    assert_eq!(ping(client).name, "lab");
}

#[test]
fn hold_fills_the_pg_and_release_drains_it() {
    let desk = Desk::new(2, 2);
    let client = &mut desk.client();
    let _: Done = client.call(Call::PortHold(port_name("p1"))).unwrap();
    let ports: PortsReply = client.call(Call::ShowPorts(only("p1"))).unwrap();
    assert_eq!(ports.ports[0].state, PortState::Held);
    // One cell each: 36 guaranteed, then XOFF at 1000 of Service. No more than a burst at once,
    // or the backlog would pause the peer too.
    for _ in 0..19 {
        desk.rig.act(|lab| (0..60).for_each(|_| lab.arrive(0, &ipv4(0, 1, 26, 0, 200))));
    }
    let until = Instant::now() + Duration::from_secs(20);
    while pg_3(client).occupancy.headroom < 1_140 - 1_036 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    let full = pg_3(client);
    assert!(full.xoff && full.xoff_edges == 1, "{full:?}");
    assert_eq!(full.occupancy.guaranteed, 36);
    assert_eq!((full.occupancy.service, full.occupancy.headroom), (1_000, 104));
    assert_eq!((full.rx_frames, full.lossless_violations), (1_140, 0));
    // Refreshed again and again; between two refreshes that come late it may have run out.
    let priority = loop {
        let pfc: PfcReply = client.call(Call::ShowPfc(only("p0"))).unwrap();
        let priority = pfc.ports[0].priorities[3].clone();
        if priority.transmitted.remaining_ns > 0 || Instant::now() >= until {
            break priority;
        }
    };
    assert!(priority.transmitted.remaining_ns > 0);
    assert_eq!(priority.causes, ["mmu"]);
    assert!(priority.transmitted.paused && priority.transmitted.xoff == 1);
    let _: Done = client.call(Call::PortRelease(port_name("p1"))).unwrap();
    while pg_3(client).occupancy != Segments::default() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    let drained = pg_3(client);
    assert_eq!((drained.xoff, drained.xon_edges), (false, 1));
    assert!(drained.watermark.user.service >= 1_000, "a mark stays until it is cleared");
    let clear = |pg, pool: Option<&str>| {
        let pool = pool.map(str::to_owned);
        Call::WatermarkClear(WatermarkFilter { pg, pool, ..WatermarkFilter::default() })
    };
    // Another PG, and a pool: this one's mark stays.
    let _: Done = client.call(clear(Some(4), None)).unwrap();
    let _: Done = client.call(clear(None, Some("lossless"))).unwrap();
    assert_eq!(pg_3(client).watermark.user, drained.watermark.user);
    let _: Done = client.call(clear(Some(3), None)).unwrap();
    let cleared = pg_3(client);
    assert_eq!(cleared.watermark.user, Segments::default());
    assert!(cleared.watermark.persistent.service >= 1_000);
    let kinds = Some(vec![EventKind::Edge]);
    let query = Trace { kinds, ..Trace::default() };
    let trace: TraceReply = client.call(Call::Trace(query)).unwrap();
    let edges: Vec<_> = trace
        .events
        .iter()
        .map(|event| match event {
            Event::Edge { port, pg, edge, cause, .. } => (port.as_str(), *pg, *edge, &cause[..]),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(edges, [("p0", 3, Edge::Xoff, "mmu"), ("p0", 3, Edge::Xon, "mmu")]);
    let since = Trace { since: Some(trace.next), ..Trace::default() };
    let again: TraceReply = client.call(Call::Trace(since)).unwrap();
    assert!(again.events.is_empty(), "no event twice: {again:?}");
}

#[test]
fn set_pg_reaches_every_worker_or_none() {
    let desk = Desk::new(2, 2);
    let client = &mut desk.client();
    let xoff = |cells| SetPg {
        pg: LOSSLESS,
        xoff: Some(XoffAmount::At(CellAmount::Cells(cells))),
        ..SetPg::default()
    };
    let reply: SetReply = client.call(Call::SetPg(xoff(1_200))).unwrap();
    assert_eq!((reply.generation, reply.changed.len()), (2, 2), "{:?}", reply.changed);
    assert_eq!(pg_3(client).thresholds.xoff, Some(1_200));
    let adopted = desk.rig.act(|lab| {
        let generations = lab.workers.iter().map(|worker| worker.profile().generation());
        generations.collect::<Vec<_>>()
    });
    assert_eq!(adopted, [2, 2]);
    // No buffer for that much Headroom.
    let set =
        SetPg { pg: LOSSLESS, headroom: Some(CellAmount::Cells(1_000_000)), ..SetPg::default() };
    let body = refused(client.call::<SetReply>(Call::SetPg(set)));
    assert_eq!(body.code, ErrorCode::Refused);
    let unknown = SetPg { port: Some("p9".to_owned()), ..xoff(900) };
    let body = refused(client.call::<SetReply>(Call::SetPg(unknown)));
    assert_eq!(body.code, ErrorCode::UnknownPort);
    assert_eq!(ping(client).generation, 2);
    assert_eq!(pg_3(client).thresholds.headroom, 512);
    let wred = SetWred {
        queue: LOSSLESS,
        kmin: Some(CellAmount::Cells(100)),
        kmax: Some(CellAmount::Cells(400)),
        pmax: Some(0.2),
        ..SetWred::default()
    };
    let reply: SetReply = client.call(Call::SetWred(wred)).unwrap();
    assert_eq!(reply.generation, 3);
    let filter = QueueFilter { port: Some("p0".to_owned()), queue: Some(LOSSLESS) };
    let ecn: EcnReply = client.call(Call::ShowEcn(filter)).unwrap();
    assert_eq!(ecn.queues[0].wred.as_ref().map(|wred| wred.kmax), Some(400));
}

#[test]
fn set_pg_keeps_headroom_at_what_the_profiles_formula_asks() {
    let term = HeadroomTerm {
        port: "p0".to_owned(),
        pg: LOSSLESS,
        need: Cells(500),
        smallest_need: Cells(500),
        headroom: Cells(512),
        terms: "cpu: 500".to_owned(),
    };
    let desk = Desk::with_terms(1, 2, vec![term]);
    let client = &mut desk.client();
    let headroom = |cells| SetPg {
        pg: LOSSLESS,
        headroom: Some(CellAmount::Cells(cells)),
        ..SetPg::default()
    };
    let body = refused(client.call::<SetReply>(Call::SetPg(headroom(499))));
    assert_eq!((body.value.as_deref(), body.limit.as_deref()), (Some("499"), Some("500")));
    assert_eq!(pg_3(client).thresholds.headroom, 512);
    let reply: SetReply = client.call(Call::SetPg(headroom(500))).unwrap();
    assert_eq!(reply.generation, 2);
}

#[test]
fn a_silent_worker_fails_a_change_by_name_and_nothing_changes() {
    let desk = Desk::new(1, 2);
    let client = &mut desk.client();
    desk.rig.deaf.store(true, Ordering::Relaxed);
    let body = refused(client.call::<Done>(Call::PortHold(port_name("p0"))));
    assert_eq!(body.code, ErrorCode::WorkerSilent);
    assert!(body.message.contains("worker 0"), "{body}");
    let set = SetPg { pg: LOSSLESS, alpha: Some(1), ..SetPg::default() };
    let body = refused(client.call::<SetReply>(Call::SetPg(set)));
    assert_eq!(body.code, ErrorCode::WorkerSilent);
    desk.rig.deaf.store(false, Ordering::Relaxed);
    let ports: PortsReply = client.call(Call::ShowPorts(only("p0"))).unwrap();
    assert_eq!(ports.ports[0].state, PortState::Up);
    assert_eq!(ping(client).generation, 1);
}

#[test]
fn static_stations_come_and_go() {
    let desk = Desk::new(1, 2);
    let client = &mut desk.client();
    let mac = "02:00:00:00:00:99".to_owned();
    let add = |mac: &str, vlan, port: &str| {
        Call::FdbAdd(FdbAdd { mac: mac.to_owned(), vlan, port: port.to_owned() })
    };
    let _: Done = client.call(add(&mac, None, "p1")).unwrap();
    let mut query = ShowFdb { max: Some(2), ..ShowFdb::default() };
    let mut entries = Vec::new();
    loop {
        let page: FdbReply = client.call(Call::ShowFdb(query.clone())).unwrap();
        entries.extend(page.entries);
        let Some(next) = page.next else { break };
        query.from = Some(next);
    }
    let listed: Vec<_> = entries.iter().map(|e| (e.mac.clone(), e.kind)).collect();
    let learned = |n| (station(n).to_string(), FdbKind::Learned);
    assert_eq!(listed, [learned(0), learned(1), (mac.clone(), FdbKind::Static)]);
    let del = || Call::FdbDel(FdbDel { mac: mac.clone(), vlan: None });
    let _: Done = client.call(del()).unwrap();
    assert_eq!(refused(client.call::<Done>(del())).code, ErrorCode::Refused);
    let group = refused(client.call::<Done>(add("01:00:5e:00:00:01", None, "p1")));
    assert_eq!(group.code, ErrorCode::Refused);
    assert_eq!(group.fix.as_deref(), Some("use the address of one station"));
    let vlan = refused(client.call::<Done>(add(&mac, Some(7), "p1")));
    assert_eq!((vlan.code, vlan.place.as_deref()), (ErrorCode::BadArgument, Some("vlan")));
    let text = refused(client.call::<Done>(add("gg", None, "p1")));
    assert_eq!((text.code, text.place.as_deref()), (ErrorCode::BadArgument, Some("mac")));
}

#[test]
fn trace_records_what_it_is_told_to() {
    let desk = Desk::new(1, 2);
    let client = &mut desk.client();
    let record = Some(vec![EventKind::Drop]);
    let query = Trace { record, ..Trace::default() };
    let reply: TraceReply = client.call(Call::Trace(query)).unwrap();
    assert!(reply.recording.contains(&EventKind::Drop));
    desk.rig.act(|lab| lab.arrive(0, &[0; 9]));
    ping(client);
    ping(client);
    let reply: TraceReply = client.call(Call::Trace(Trace::default())).unwrap();
    let dropped = |event: &Event| matches!(event, Event::Drop { bytes: 9, .. });
    assert!(reply.events.iter().any(dropped), "{reply:?}");
    let wrong = Trace { since: Some(vec![1, 2, 3]), ..Trace::default() };
    let body = refused(client.call::<TraceReply>(Call::Trace(wrong)));
    assert_eq!(body.code, ErrorCode::BadArgument);
}

#[test]
fn arguments_out_of_range_are_named() {
    let desk = Desk::new(1, 1);
    let client = &mut desk.client();
    let calls = [
        (Call::ShowPg(PgFilter { port: None, pg: Some(8) }), "pg"),
        (Call::ShowQueue(QueueFilter { port: None, queue: Some(255) }), "queue"),
        (Call::ShowPfc(only("nobody")), "port"),
        (
            Call::WatermarkShow(WatermarkFilter {
                pool: Some("sea".to_owned()),
                ..WatermarkFilter::default()
            }),
            "pool",
        ),
    ];
    for (call, place) in calls {
        let body = refused(client.call_raw(call));
        assert_eq!(body.place.as_deref(), Some(place), "{body}");
        assert!(body.fix.is_some(), "{body}");
    }
}

#[test]
fn ten_thousand_random_strings_get_errors_while_pings_are_answered() {
    let desk = Desk::new(1, 2);
    let stream = desk.stream();
    let reader = stream.try_clone().unwrap();
    let count = 10_000;
    let errors = std::thread::spawn(move || {
        let mut errors = 0;
        for line in BufReader::new(reader).lines().take(count) {
            let response: Response = serde_json::from_str(&line.unwrap()).unwrap();
            errors += usize::from(matches!(response.outcome, Outcome::Error(_)));
        }
        errors
    });
    let noise = std::thread::spawn(move || {
        let (mut state, mut stream) = (7, stream);
        for n in 0..count {
            let len = random(&mut state) as usize % 200;
            let bytes = (0..len).map(|_| random(&mut state) as u8);
            let mut line: Vec<u8> = bytes.filter(|byte| *byte != b'\n').collect();
            if n % 3 == 0 {
                // Some of it looks like a request.
                line.splice(0..0, *b"{\"v\":1,\"id\":5,\"call\":{\"set_pg\":");
            }
            line.push(b'\n');
            stream.write_all(&line).unwrap();
        }
    });
    let client = &mut desk.client();
    let mut pings = 0;
    while !noise.is_finished() || pings < 100 {
        assert_eq!(ping(client).generation, 1);
        pings += 1;
    }
    noise.join().unwrap();
    assert_eq!(errors.join().unwrap(), count, "one error a line");
    assert_eq!(ping(client).generation, 1, "nothing was changed");
}

#[test]
fn a_line_too_long_is_named_and_ends_the_connection() {
    let desk = Desk::new(1, 1);
    let stream = desk.stream();
    let mut writer = stream.try_clone().unwrap();
    let flood = std::thread::spawn(move || {
        let chunk = vec![b'x'; 64 << 10];
        (0..32).all(|_| writer.write_all(&chunk).is_ok())
    });
    let body = answer(&stream);
    assert_eq!(body.code, ErrorCode::TooLong);
    assert!(flood.join().unwrap(), "what it still sends is taken, so that it sees the answer");
    assert_eq!((&stream).read(&mut [0; 16]).unwrap(), 0, "the connection ends");
    ping(&mut desk.client());
}
