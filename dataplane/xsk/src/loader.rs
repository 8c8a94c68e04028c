//! Loads the XDP program of a port and attaches it by `bpf_link`.
//!
//! The link goes with its file descriptor, so a killed process leaves nothing behind. Every port
//! has its own instance of the program with its own maps.

use crate::error::XskError;
use crate::socket::XskSocket;
use libbpf_rs::libbpf_sys::{self, bpf_link_create_opts};
use libbpf_rs::query::ProgInfoIter;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle, OpenObject, PrintLevel, Xdp, XdpFlags};
use std::io;
use std::mem::{size_of, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;

#[allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    clippy::all,
    clippy::pedantic,
    reason = "generated"
)]
#[allow(clippy::undocumented_unsafe_blocks, clippy::restriction, reason = "generated")]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/xdp_ingress.skel.rs"));
}

/// The name that the kernel knows our program by: how a left-over of ours is recognised.
const PROGRAM: &str = "holdfast_rx";

/// How the XDP program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpMode {
    /// In the driver.
    Native,
    /// In the kernel's receive path, after a socket buffer was made: slower.
    Generic,
}

/// What a port may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum XdpPreference {
    /// Native where the driver has it, else generic (SPEC 9).
    #[default]
    Auto,
    /// Native or not at all.
    Native,
    /// Generic.
    Generic,
}

/// What a port believes when it classifies (SPEC 2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// DSCP, else PCP, else the default.
    #[default]
    Dscp,
    /// PCP, else the default.
    Pcp,
    /// The default.
    Port,
}

/// Which frames of a port are lossless, as the XDP program sees it under `rx_pressure`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LosslessMap {
    /// What the port believes.
    pub trust: Trust,
    /// Bit n: DSCP n leads to a lossless PG.
    pub dscp: u64,
    /// Bit n: PCP n leads to a lossless PG.
    pub pcp: u8,
    /// The default CoS leads to a lossless PG.
    pub rest: bool,
}

impl LosslessMap {
    /// Lossless in either of them: for the time in which one replaces the other. Where they read
    /// different fields of a frame there is no such map, and it is `self`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        if self.trust != other.trust {
            return self;
        }
        let (dscp, pcp) = (self.dscp | other.dscp, self.pcp | other.pcp);
        Self { trust: self.trust, dscp, pcp, rest: self.rest || other.rest }
    }

    /// `struct port_config` of the program.
    fn to_bytes(self) -> [u8; 24] {
        let trust = match self.trust {
            Trust::Dscp => 0u32,
            Trust::Pcp => 1,
            Trust::Port => 2,
        };
        let mut bytes = [0; 24];
        let fields = [u32::from(self.pcp), u32::from(self.rest), trust, 0];
        let words = self.dscp.to_ne_bytes().into_iter();
        let all = words.chain(fields.into_iter().flat_map(u32::to_ne_bytes));
        bytes.iter_mut().zip(all).for_each(|(to, from)| *to = from);
        bytes
    }
}

/// What the XDP program counted; the counters only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XdpCounters {
    /// Frames given to a socket.
    pub redirected: u64,
    /// Frames left to the kernel: no socket is bound to their queue.
    pub passed: u64,
    /// Lossy frames dropped under `rx_pressure`.
    pub rx_pressure_lossy: u64,
    /// Frames without a whole Ethernet header, dropped.
    pub runt: u64,
}

/// The maps that the port's worker writes.
pub(crate) struct PortMaps {
    sockets: MapHandle,
    rx_pressure: MapHandle,
    counters: CounterMap,
}

impl PortMaps {
    /// Enters the sockets of all queues; `false` if the kernel refused one, to be tried again.
    pub(crate) fn serve<'a>(&self, sockets: impl Iterator<Item = &'a XskSocket>) -> bool {
        let enter = |(queue, socket): (usize, &XskSocket)| {
            let fd = socket.as_fd().as_raw_fd();
            let key = (queue as u32).to_ne_bytes();
            self.sockets.update(&key, &fd.to_ne_bytes(), MapFlags::ANY).is_ok()
        };
        sockets.enumerate().all(enter)
    }

    /// Takes the sockets out: no frame is given to them any more.
    pub(crate) fn retire(&self, queues: usize) {
        for queue in 0..queues as u32 {
            // Not there if `serve` never came so far.
            let _ = self.sockets.delete(&queue.to_ne_bytes());
        }
    }

    /// What the program counted.
    pub(crate) fn counters(&self) -> io::Result<XdpCounters> {
        self.counters.read()
    }

    /// Starts or ends the shedding of lossy frames; `false` if the kernel refused.
    pub(crate) fn set_rx_pressure(&self, on: bool) -> bool {
        let value = u32::from(on).to_ne_bytes();
        self.rx_pressure.update(&[0; 4], &value, MapFlags::ANY).is_ok()
    }
}

/// Tells a port's XDP program which frames are lossless.
#[derive(Clone)]
pub struct LosslessWriter(Arc<MapHandle>);

impl LosslessWriter {
    /// Puts a map in force.
    ///
    /// # Errors
    /// What the kernel says; the old map stays in force.
    pub fn set(&self, map: LosslessMap) -> io::Result<()> {
        self.0.update(&[0; 4], &map.to_bytes(), MapFlags::ANY).map_err(|e| to_io(&e))
    }
}

/// The counters of the XDP program.
pub(crate) struct CounterMap(MapHandle);

impl CounterMap {
    /// The counters of all CPUs, added up.
    pub(crate) fn read(&self) -> io::Result<XdpCounters> {
        let sum = |which: u32| -> io::Result<u64> {
            let found = self.0.lookup_percpu(&which.to_ne_bytes(), MapFlags::ANY);
            let cpus = found.map_err(|e| to_io(&e))?.unwrap_or_default();
            let value = |cpu: &Vec<u8>| cpu.first_chunk().map_or(0, |b| u64::from_ne_bytes(*b));
            Ok(cpus.iter().map(value).sum())
        };
        Ok(XdpCounters {
            redirected: sum(0)?,
            passed: sum(1)?,
            rx_pressure_lossy: sum(2)?,
            runt: sum(3)?,
        })
    }
}

/// A loaded program with its maps.
pub(crate) struct Loaded {
    program: OwnedFd,
    pub(crate) port: PortMaps,
    pub(crate) lossless: LosslessWriter,
    /// Large frames pass the program (Linux 5.18).
    pub(crate) frags: bool,
}

/// libbpf's own words go to the log, where debug messages are wanted.
fn hush() {
    libbpf_rs::set_print(Some((PrintLevel::Debug, |_, text| log::debug!("{}", text.trim_end()))));
}

/// Loads the program, without fragments where the kernel knows none.
pub(crate) fn load(port: &str) -> Result<Loaded, XskError> {
    hush();
    load_with(true)
        .or_else(|_| load_with(false))
        .map_err(|e| XskError::Program { port: port.to_owned(), reason: format!("{e:#}") })
}

fn load_with(frags: bool) -> Result<Loaded, libbpf_rs::Error> {
    let mut storage = MaybeUninit::<OpenObject>::uninit();
    let mut open = skeleton::XdpIngressSkelBuilder::default().open(&mut storage)?;
    if !frags {
        open.progs.holdfast_rx.set_flags(0);
    }
    let loaded = open.load()?;
    let maps = &loaded.maps;
    Ok(Loaded {
        program: loaded.progs.holdfast_rx.as_fd().try_clone_to_owned()?,
        port: PortMaps {
            sockets: MapHandle::try_from(&maps.sockets)?,
            rx_pressure: MapHandle::try_from(&maps.rx_pressure)?,
            counters: CounterMap(MapHandle::try_from(&maps.counters)?),
        },
        lossless: LosslessWriter(Arc::new(MapHandle::try_from(&maps.config)?)),
        frags,
    })
}

/// An attached program; dropping it detaches.
pub(crate) struct Attached {
    _link: OwnedFd,
    pub(crate) mode: XdpMode,
    /// Why it isn't native, where native was tried.
    pub(crate) note: Option<String>,
}

/// Attaches the program to a netdev of the calling thread's namespace.
pub(crate) fn attach(
    loaded: &Loaded,
    port: &str,
    ifindex: u32,
    preference: XdpPreference,
) -> Result<Attached, XskError> {
    make_room(loaded, port, ifindex)?;
    let native = || link(loaded.program.as_fd(), ifindex, &XdpFlags::DRV_MODE);
    let generic = || link(loaded.program.as_fd(), ifindex, &XdpFlags::SKB_MODE);
    let done = |link, mode, note| Attached { _link: link, mode, note };
    let tried = match preference {
        XdpPreference::Native => native().map(|fd| done(fd, XdpMode::Native, None)),
        XdpPreference::Generic => generic().map(|fd| done(fd, XdpMode::Generic, None)),
        XdpPreference::Auto => match native() {
            Ok(fd) => Ok(done(fd, XdpMode::Native, None)),
            Err(e) if e.raw_os_error() == Some(nix::libc::EBUSY) => Err(e),
            Err(e) => {
                let note = format!("no native XDP: {e}{}", hint(&e));
                generic().map(|fd| done(fd, XdpMode::Generic, Some(note)))
            }
        },
    };
    tried.map_err(|source| match source.raw_os_error() {
        Some(nix::libc::EBUSY | nix::libc::EEXIST) => {
            XskError::SecondInstance { port: port.to_owned(), id: present(ifindex).unwrap_or(0) }
        }
        _ => XskError::Attach {
            port: port.to_owned(),
            mode: match preference {
                XdpPreference::Auto => "native, then generic",
                XdpPreference::Native => "native",
                XdpPreference::Generic => "generic",
            },
            hint: hint(&source),
            source,
        },
    })
}

/// What to do about a refusal, where it is known.
fn hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(nix::libc::ENOSPC) => {
            "; a veth needs at least as many RX queues as its peer has TX queues (ethtool -L)"
        }
        Some(nix::libc::ERANGE | nix::libc::EINVAL) => "; the MTU may be too large for native XDP",
        _ => "",
    }
}

/// The id of the program on a netdev.
fn present(ifindex: u32) -> Option<u32> {
    // The descriptor isn't used for a query; any will do.
    let stdin = io::stdin();
    let id = Xdp::new(stdin.as_fd()).query_id(ifindex as i32, XdpFlags::NONE).ok()?;
    (id != 0).then_some(id)
}

/// Detaches a left-over of ours; refuses to touch anything else.
fn make_room(loaded: &Loaded, port: &str, ifindex: u32) -> Result<(), XskError> {
    let Some(id) = present(ifindex) else {
        return Ok(());
    };
    let name = ProgInfoIter::default().find(|info| info.id == id).map(|info| info.name);
    let program = name.map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let port = port.to_owned();
    if program != PROGRAM {
        return Err(XskError::ForeignProgram { port, program, id });
    }
    // A program that a living process holds by a link can't be detached from outside: EBUSY.
    let xdp = Xdp::new(loaded.program.as_fd());
    let modes = [XdpFlags::DRV_MODE, XdpFlags::SKB_MODE];
    let _ = modes.map(|mode| xdp.detach(ifindex as i32, mode));
    if present(ifindex).is_some() {
        return Err(XskError::SecondInstance { port, id });
    }
    log::warn!("{port}: replaced a left-over XDP program of ours (id {id})");
    Ok(())
}

fn link(program: BorrowedFd<'_>, ifindex: u32, mode: &XdpFlags) -> io::Result<OwnedFd> {
    let opts = bpf_link_create_opts {
        sz: size_of::<bpf_link_create_opts>() as u64,
        flags: mode.bits(),
        ..Default::default()
    };
    // SAFETY: the descriptor is open, and `opts` is as large as it says and only read.
    let fd = unsafe {
        let kind = libbpf_sys::BPF_XDP;
        libbpf_sys::bpf_link_create(program.as_raw_fd(), ifindex as i32, kind, &opts)
    };
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(-fd));
    }
    // SAFETY: the kernel has just made this descriptor, nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn to_io(error: &libbpf_rs::Error) -> io::Error {
    io::Error::other(format!("{error:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lossless_map_is_laid_out_as_the_program_reads_it() {
        let map = LosslessMap { trust: Trust::Pcp, dscp: 1 << 63 | 1, pcp: 0x88, rest: true };
        let mut want = (1u64 << 63 | 1).to_ne_bytes().to_vec();
        for word in [0x88u32, 1, 1, 0] {
            want.extend(word.to_ne_bytes());
        }
        assert_eq!(map.to_bytes().to_vec(), want);
    }

    #[test]
    fn a_map_for_the_change_spares_what_either_does() {
        let old = LosslessMap { trust: Trust::Dscp, dscp: 1 << 26, pcp: 1, rest: false };
        let new = LosslessMap { trust: Trust::Dscp, dscp: 1 << 34, pcp: 2, rest: true };
        let both = LosslessMap { dscp: 1 << 26 | 1 << 34, pcp: 3, ..new };
        assert_eq!((old.or(new), new.or(old)), (both, both));
        let by_pcp = LosslessMap { trust: Trust::Pcp, ..old };
        assert_eq!(new.or(by_pcp), new);
    }
}
