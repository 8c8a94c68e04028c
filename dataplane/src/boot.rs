//! From two files to a running switch, and back to a quiet machine.

use crate::config::Config;
use crate::control::{self, Applying, Control, ControlSettings, Keeper, Listener, PortDesk};
use crate::kept_links;
use crate::link_events::{Link, LinkWatcher, Told};
use crate::mailbox::{Mailbox, Workers};
use crate::opening::{look_at_all, mtu, open, Opened};
use crate::ports::{Downs, KeeperParts, PortKeeper, WRED_SEED};
use crate::publication::Publication;
use crate::shedding::Shedding;
use crate::switch::{PortInfo, Switch};
use crate::worker_thread::{LiveWorker, WorkerStats, WorkerThread, WorkerThreads};
use crossbeam::channel::{bounded, unbounded};
use holdfast_api::switch_doc;
use holdfast_core::context::Shared;
use holdfast_core::copies::Copies;
use holdfast_core::deadlock::stuck::StuckCells;
use holdfast_core::fdb::Fdb;
use holdfast_core::ids::{PortId, WorkerId};
use holdfast_core::mmu::Mmu;
use holdfast_core::port::Port;
use holdfast_core::probe::Probe;
use holdfast_core::profile::Profile;
use holdfast_core::ring::{spsc, Consumer, Producer};
use holdfast_core::topology::{PortPlace, ReservedGroups, Topology};
use holdfast_core::units::Time;
use holdfast_core::worker::WorkerParts;
use holdfast_plan::ProfilePlan;
use holdfast_shm::layout::Layout;
use holdfast_shm::{Identity, Segment};
use holdfast_wire::MacAddr;
use holdfast_xsk::{clock, Memory, UndoLog, XskPool, XskPort};
use std::error::Error;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// News of ports that may wait for the control thread, which takes them once a second. A link that
/// flaps faster has the rest left out.
const NEWS: usize = 256;

type Failure = Box<dyn Error>;

/// The running switch; [`Running::shut_down`] ends it in order.
pub struct Running {
    threads: WorkerThreads,
    keeper: PortKeeper,
    control: Control,
    links: LinkWatcher,
    /// The frames' memory outlives every socket.
    _memory: Memory,
}

/// Boots a switch from its files. Whatever fails, what was started ends and what was changed is
/// put back.
///
/// # Errors
/// The first thing that fails, in words for the operator.
pub fn boot(config: Config) -> Result<Running, Failure> {
    // First of all: a second instance of a running switch must not touch its ports.
    let listener = Listener::bind(config.switch.socket_path())?;
    // Before anything is looked at: what a killed instance left is not the original.
    let undo = kept_links::put_back_left(&config.switch.state_path());
    let seen = look_at_all(&config)?;
    let draft = config.plan(|n| seen.get(n).map(|seen| seen.mtu))?;
    let layout = config.layout(draft.spec(), |n| seen.get(n).map(|seen| seen.queues))?;
    let (memory, pools) = Memory::new(&layout)?;
    let opened = config
        .switch
        .ports
        .iter()
        .map(|port| open(&memory, &config, port, &undo))
        .collect::<Result<Vec<_>, Failure>>()?;
    let mtus = config.switch.ports.iter().zip(&opened);
    let mtus = mtus.map(|(doc, port)| mtu(&config, doc, port.guard.status().mtu));
    let mtus = mtus.collect::<Result<Vec<u16>, Failure>>()?;
    let mtu_of = |n: usize| mtus.get(n).copied();
    let plan = config.plan(mtu_of)?;
    let notes: Vec<String> = config.notes.iter().chain(plan.notes()).cloned().collect();
    notes.iter().for_each(|note| log::warn!("profile {}: {note}", config.profile.name));
    let profile = Arc::new(Profile::new(1, plan.spec().clone())?);
    let shedding = Shedding::new(opened.iter().map(|port| port.guard.lossless().clone()));
    shedding.follow(profile.spec())?;
    let keeper = Keeper::new(config.switch.state_path(), config.last_good());
    if let Err(error) = keeper.keep_first() {
        log::warn!("the profile is not kept for the next start: {error}");
    }
    let (facts, document) = (config.facts(mtu_of), config.profile.clone());
    let applying = Applying { facts, document, keeper, shedding };
    let mut queues: Vec<u32> = opened.iter().map(|port| port.guard.status().queues).collect();
    let most = queues.iter().copied().max().unwrap_or(1);
    queues.resize(profile.spec().ports.len(), most);
    let ground = Ground { memory, pools, undo, queues };
    start(config, ground, opened, (profile, notes), (&plan, applying, listener))
}

fn place(config: &Config, number: usize, workers: usize) -> PortPlace {
    let doc = &config.switch.ports[number];
    let owner = doc.worker.map_or(number % workers, usize::from) % workers;
    let peer = doc.wire.as_ref().and_then(|name| {
        let number = config.switch.ports.iter().position(|port| port.name == *name)?;
        PortId::new(u8::try_from(number).ok()?)
    });
    PortPlace {
        owner: WorkerId::new(owner as u8).unwrap_or_default(),
        wire_peer: peer,
        vlans: doc.vlans.clone(),
        pvid: doc.pvid.unwrap_or(1),
    }
}

/// Who owns the port of a number, or will.
fn owner(topology: &Topology, number: usize, workers: usize) -> usize {
    let owner = topology.owner(PortId::from_bits(number as u8));
    owner.map_or(number % workers.max(1), WorkerId::index)
}

fn topology(config: &Config, workers: usize) -> Topology {
    let reserved = match config.switch.fdb.reserved_groups {
        switch_doc::ReservedGroups::Drop => ReservedGroups::Drop,
        switch_doc::ReservedGroups::Forward => ReservedGroups::Forward,
    };
    let places = (0..config.switch.ports.len()).map(|number| place(config, number, workers));
    Topology::new(places, config.switch.fdb.vlan_aware, reserved)
}

fn static_entries(config: &Config, fdb: &Fdb) -> Result<(), Failure> {
    for entry in &config.switch.fdb.statics {
        let number = config.switch.ports.iter().position(|port| port.name == entry.port);
        let port = number.and_then(|n| PortId::new(n as u8));
        if let Some(port) = port {
            let mac: MacAddr = entry.mac.parse()?;
            fdb.add_static(mac, entry.vlan.unwrap_or(0), port, clock::now())?;
        }
    }
    Ok(())
}

/// Hand-over rings between all pairs of workers, each large enough for every frame there can be.
fn hand_over_rings(workers: usize, frames: usize) -> Vec<(Vec<Consumer>, Vec<Option<Producer>>)> {
    let mut ends: Vec<(Vec<Consumer>, Vec<Option<Producer>>)> =
        (0..workers).map(|_| Default::default()).collect();
    for from in 0..workers {
        for to in 0..workers {
            let mut producer = None;
            if from != to {
                let (put, take) = spsc(frames);
                ends[to].0.push(take);
                producer = Some(put);
            }
            ends[from].1.push(producer);
        }
    }
    ends
}

/// Everything that the threads will share.
struct Assembly {
    memory: Memory,
    profile: Arc<Profile>,
    topology: Arc<Topology>,
    shared: Arc<Shared>,
    /// Frames that can be under way at once: what no queue and no ring must be too small for.
    frames: usize,
    stats: Vec<Arc<WorkerStats>>,
}

/// Opened ports, dealt out.
struct Dealt {
    /// Ports by their owner.
    owned: Vec<Vec<Port<XskPort>>>,
    infos: Vec<PortInfo>,
    links: Vec<Link>,
}

/// What is there before the threads are.
struct Ground {
    memory: Memory,
    pools: Vec<XskPool>,
    undo: UndoLog,
    /// RX queues of each port that the memory is laid out for.
    queues: Vec<u32>,
}

fn start(
    config: Config,
    ground: Ground,
    opened: Vec<Opened>,
    (profile, notes): (Arc<Profile>, Vec<String>),
    (plan, applying, listener): (&ProfilePlan, Applying, Listener),
) -> Result<Running, Failure> {
    let Ground { memory, pools, undo, queues } = ground;
    let assembly = assemble(&config, memory, profile, pools.len())?;
    let (workers, mailboxes) = Workers::<LiveWorker>::new(pools.len())?;
    let (wake, downs) = (workers.doors(), Downs::default());
    let (news, link_news) = bounded(NEWS);
    let ((keeper, to_keeper), (calls, port_calls)) = (unbounded(), unbounded());
    let told = Told { news: news.clone(), keeper: keeper.clone(), downs: downs.clone() };
    let links = LinkWatcher::start(told, move || {
        wake.iter().for_each(|door| door.ring_if_asleep());
    })?;
    let mut segment = Segment::new(layout(workers.count())?, &identity())?;
    let dealt = deal(&config, &assembly, opened, (pools.len(), &mut segment));
    links.desk().add(dealt.links);
    // Made after `links`, and so ended before: sockets are closed when the links are put back.
    let mut threads = WorkerThreads::new(workers.doors());
    let workplaces = (dealt.owned, pools, mailboxes);
    start_workers(&config, &assembly, workplaces, &mut segment, &mut threads)?;
    let Assembly { memory, profile, topology, shared, stats, .. } = assembly;
    let (places, present) = (profile.spec().ports.len(), config.switch.ports.len());
    let owners = (0..places).map(|number| owner(&topology, number, stats.len())).collect();
    let blocks = (present..places).filter_map(|n| Some((n, segment.link(n)?))).collect();
    let settings = ControlSettings {
        chunks: u64::from(memory.chunks()),
        smallest_lossless_frame: plan.smallest_lossless_frame(),
        applying,
        segment,
        links: link_news,
        desk: PortDesk::new(port_calls, keeper.clone(), config.switch.clone()),
        downs: downs.clone(),
        because: config.notes.clone(),
    };
    let switch = Switch {
        name: config.switch.name.clone(),
        workers: workers.clone(),
        shared,
        topology,
        profile,
        notes,
        headroom_terms: plan.headroom_terms().to_vec(),
        ports: dealt.infos,
        cpus: vec![None; stats.len()],
        stats,
        started: Instant::now(),
    };
    let control = control::spawn(switch, settings, listener)?;
    say(&config, workers.count());
    let parts = KeeperParts {
        config: Arc::new(config),
        memory: memory.clone(),
        undo,
        workers,
        owners,
        blocks,
        queues,
        links: links.desk().clone(),
        downs,
        news,
        calls,
        waker: Arc::clone(control.waker()),
    };
    let keeper = PortKeeper::start(parts, keeper, to_keeper)?;
    Ok(Running { threads, keeper, control, links, _memory: memory })
}

fn say(config: &Config, workers: usize) {
    log::info!(
        "switch {}: profile {}, {} ports, {workers} workers, control socket {}",
        config.switch.name,
        config.profile.name,
        config.switch.ports.len(),
        config.switch.socket_path().display()
    );
}

fn assemble(
    config: &Config,
    memory: Memory,
    profile: Arc<Profile>,
    workers: usize,
) -> Result<Assembly, Failure> {
    let fdb_doc = &config.switch.fdb;
    let fdb = Fdb::new(fdb_doc.size as usize, fdb_doc.ageing.0, u64::from(std::process::id()));
    static_entries(config, &fdb)?;
    let spec = profile.spec();
    Ok(Assembly {
        topology: Arc::new(topology(config, workers)),
        shared: Arc::new(Shared {
            mmu: Mmu::new(&profile),
            fdb,
            copies: Copies::new(memory.chunks()),
            probe: Probe::default(),
            stuck: StuckCells::default(),
        }),
        frames: (spec.total.0 + spec.flood_limit) as usize,
        stats: (0..workers).map(|_| Arc::default()).collect(),
        memory,
        profile,
    })
}

fn deal(
    config: &Config,
    assembly: &Assembly,
    opened: Vec<Opened>,
    (workers, segment): (usize, &mut Segment),
) -> Dealt {
    let mut dealt = Dealt {
        owned: (0..workers).map(|_| Vec::new()).collect(),
        infos: Vec::new(),
        links: Vec::new(),
    };
    for ((number, port), doc) in opened.into_iter().enumerate().zip(&config.switch.ports) {
        let id = PortId::from_bits(number as u8);
        let Some(spec) = assembly.profile.port(id) else { continue };
        let owner = assembly.topology.owner(id).unwrap_or_default().index();
        let status = port.guard.status().clone();
        let (frames, mac) = (assembly.frames, status.mac);
        if let Some(owned) = dealt.owned.get_mut(owner) {
            owned.push(Port::new(id, mac, port.io, spec, frames, WRED_SEED));
        }
        dealt.infos.push(PortInfo {
            name: doc.name.clone(),
            netns: doc.netns.clone(),
            ifname: doc.ifname.clone(),
            status,
        });
        if let Some(block) = segment.link(number) {
            dealt.links.push(Link::new((number, 0), doc.name.clone(), port.guard, block));
        }
    }
    dealt
}

fn layout(workers: usize) -> Result<Layout, Failure> {
    Layout::new(workers).ok_or_else(|| format!("{workers} workers: there can be 1 to 16").into())
}

fn identity() -> Identity {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Identity {
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_ns: u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX),
        started_ns: clock::now().0,
    }
}

/// What the workers are given, each list in the order of their numbers.
type Workplaces = (Vec<Vec<Port<XskPort>>>, Vec<XskPool>, Vec<Mailbox<LiveWorker>>);

fn start_workers(
    config: &Config,
    assembly: &Assembly,
    (owned, pools, mailboxes): Workplaces,
    segment: &mut Segment,
    threads: &mut WorkerThreads,
) -> Result<(), Failure> {
    let count = pools.len();
    let rings = hand_over_rings(count, assembly.frames);
    let each = owned.into_iter().zip(pools).zip(rings).zip(mailboxes).zip(&assembly.stats);
    for (number, ((((ports, pool), (inboxes, outboxes)), mailbox), stats)) in each.enumerate() {
        let parts = WorkerParts {
            id: WorkerId::new(number as u8).unwrap_or_default(),
            shared: Arc::clone(&assembly.shared),
            profile: Arc::clone(&assembly.profile),
            topology: Arc::clone(&assembly.topology),
            pool,
            ports,
            inboxes,
            outboxes,
            trace_capacity: config.switch.trace.events as usize,
        };
        let places = 0..assembly.profile.spec().ports.len();
        let own = places.filter(|place| owner(&assembly.topology, *place, count) == number);
        let own = own.map(|place| PortId::from_bits(place as u8));
        let publication = Publication::new(segment, number, own);
        start_worker(parts, mailbox, (Arc::clone(stats), publication), threads)?;
    }
    Ok(())
}

fn start_worker(
    parts: WorkerParts<XskPort>,
    mailbox: Mailbox<LiveWorker>,
    (stats, publication): (Arc<WorkerStats>, Publication),
    threads: &mut WorkerThreads,
) -> Result<(), Failure> {
    let worker = LiveWorker::new(parts);
    threads.start(|doors, stop| WorkerThread {
        worker,
        mailbox,
        doors,
        stats,
        stop,
        cpu: None,
        next_losses: Time::default(),
        publication,
        worked: Time::default(),
    })
}

impl Running {
    /// Ends the switch: workers drain and let their peers go, then nothing is opened any more, then
    /// the control socket goes, then the links get their settings back (SPEC 14).
    pub fn shut_down(self) {
        let start = clock::now();
        drop(self.threads);
        log::info!("drained after {} us", clock::now().since(start).0 / 1_000);
        self.keeper.stop();
        self.control.stop();
        drop(self.links);
    }
}
