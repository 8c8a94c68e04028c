//! A lab: namespaces and veths that go with the test, hosts that send and capture raw frames, and
//! a forwarder without any switch logic.

use holdfast_core::frame::FrameHandle;
use holdfast_core::io::{FramePool, PortIo, Received, BURST};
use holdfast_core::units::FrameLen;
use holdfast_xsk::{
    open_port, Layout, Memory, Netns, NetnsHandle, PortConfig, PortGuard, RingSizes, XskPool,
    XskPort,
};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{OpenObject, TcHookBuilder, TC_EGRESS};
use nix::libc;
use nix::sys::socket::{setsockopt, sockopt::Mark};
use std::collections::VecDeque;
use std::mem::{size_of, zeroed, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

#[allow(warnings, clippy::all, clippy::restriction, reason = "generated")]
pub(crate) mod bench {
    include!(concat!(env!("OUT_DIR"), "/xdp_bench.skel.rs"));
}

/// How long to wait for something that normally takes milliseconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Runs a program and returns what it printed.
pub(crate) fn sh(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let done = Command::new(words[0]).args(&words[1..]).output().unwrap();
    assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// `hosts` namespaces, each joined to one for the switch: h0 -- p0, h1 -- p1, ...
pub(crate) struct Lab {
    /// The switch's namespace.
    pub(crate) switch: String,
    /// The hosts' namespaces.
    pub(crate) hosts: Vec<String>,
}

impl Lab {
    pub(crate) fn new(hosts: usize, veth: &str) -> Self {
        let tag = format!("hfx{}n{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let lab = Self {
            switch: format!("{tag}s"),
            hosts: (0..hosts).map(|n| format!("{tag}h{n}")).collect(),
        };
        for netns in lab.hosts.iter().chain([&lab.switch]) {
            sh(&format!("ip netns add {netns}"));
            sh(&format!("ip netns exec {netns} sysctl -qw net.ipv6.conf.all.disable_ipv6=1"));
            sh(&format!("ip netns exec {netns} sysctl -qw net.ipv6.conf.default.disable_ipv6=1"));
        }
        for (n, host) in lab.hosts.iter().enumerate() {
            let switch = &lab.switch;
            sh(&format!("ip -n {switch} link add p{n} {veth} type veth peer name h{n} {veth}"));
            sh(&format!("ip -n {switch} link set h{n} netns {host}"));
            sh(&format!("ip -n {host} link set h{n} up"));
            sh(&format!("ip -n {switch} link set p{n} up"));
        }
        lab
    }

    /// The config of port `n`.
    pub(crate) fn config(&self, n: usize, ring: u32) -> PortConfig {
        PortConfig {
            netns: Netns::Named(self.switch.clone()),
            ifname: format!("p{n}"),
            rings: RingSizes { rx: ring, fill: ring, tx: ring, completion: ring },
            ..PortConfig::default()
        }
    }

    /// Tags what host `n` sends as a VLAN netdev would; it stays until the host goes.
    pub(crate) fn tag_at_egress(&self, n: usize) {
        let mut storage = MaybeUninit::<OpenObject>::uninit();
        let open = bench::XdpBenchSkelBuilder::default().open(&mut storage).unwrap();
        let skel = open.load().unwrap();
        let program = skel.progs.bench_tag.as_fd();
        let netns = Netns::Named(self.hosts[n].clone()).open().unwrap();
        let attach = || {
            let index = nix::net::if_::if_nametoindex(&*format!("h{n}")).unwrap() as i32;
            let mut hook =
                TcHookBuilder::new(program).ifindex(index).handle(1).priority(1).hook(TC_EGRESS);
            hook.create().unwrap();
            hook.attach().map(drop).unwrap();
        };
        netns.run(attach).unwrap();
    }

    pub(crate) fn host(&self, n: usize) -> Host {
        Host::new(&self.hosts[n], &format!("h{n}"))
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for netns in self.hosts.iter().chain([&self.switch]) {
            let _ = Command::new("ip").args(["netns", "del", netns]).output();
        }
    }
}

/// A raw socket on a host's netdev.
pub(crate) struct Host(OwnedFd);

impl Host {
    pub(crate) fn new(netns: &str, ifname: &str) -> Self {
        let handle: NetnsHandle = Netns::Named(netns.into()).open().unwrap();
        handle.run(|| Self::here(ifname)).unwrap()
    }

    fn here(ifname: &str) -> Self {
        let all = (libc::ETH_P_ALL as u16).to_be();
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: plain system calls over values that live until they return.
        unsafe {
            let fd = libc::socket(libc::AF_PACKET, kind, 0);
            assert!(fd >= 0);
            let fd = OwnedFd::from_raw_fd(fd);
            let set = |level, option, value: libc::c_int| {
                let at = std::ptr::from_ref(&value).cast();
                assert_eq!(libc::setsockopt(fd.as_raw_fd(), level, option, at, 4), 0);
            };
            set(libc::SOL_PACKET, libc::PACKET_AUXDATA, 1);
            set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, 64 << 20);
            set(libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, 64 << 20);
            let mut address: libc::sockaddr_ll = zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = all;
            let name = std::ffi::CString::new(ifname).unwrap();
            address.sll_ifindex = libc::if_nametoindex(name.as_ptr()) as i32;
            let at = std::ptr::from_ref(&address).cast();
            let len = size_of::<libc::sockaddr_ll>() as u32;
            assert_eq!(libc::bind(fd.as_raw_fd(), at, len), 0);
            Self(fd)
        }
    }

    /// Gives the frames that are sent from now on a mark.
    pub(crate) fn mark(&self, mark: u32) {
        setsockopt(&self.0, Mark, &mark).unwrap();
    }

    pub(crate) fn send(&self, frame: &[u8]) {
        // SAFETY: the pointer and the length are those of `frame`.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
        assert_eq!(sent, frame.len() as isize, "{}", std::io::Error::last_os_error());
    }

    /// The next frame that came in, with the tag that the kernel took out put back.
    pub(crate) fn receive(&self) -> Option<Vec<u8>> {
        loop {
            let mut bytes = vec![0u8; 16_384];
            let mut control = [0u64; 32];
            // SAFETY: every pointer and length is that of a local that lives until the end, and
            // the control message is read only if the kernel says that it is there.
            unsafe {
                let mut from: libc::sockaddr_ll = zeroed();
                let mut piece =
                    libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
                let mut message: libc::msghdr = zeroed();
                message.msg_name = std::ptr::from_mut(&mut from).cast();
                message.msg_namelen = size_of::<libc::sockaddr_ll>() as u32;
                message.msg_iov = &mut piece;
                message.msg_iovlen = 1;
                message.msg_control = control.as_mut_ptr().cast();
                message.msg_controllen = size_of_val(&control);
                let len = libc::recvmsg(self.0.as_raw_fd(), &mut message, 0);
                if len < 0 {
                    return None;
                }
                if from.sll_pkttype == libc::PACKET_OUTGOING {
                    continue;
                }
                bytes.truncate(len as usize);
                let header = libc::CMSG_FIRSTHDR(&message);
                if !header.is_null() && (*header).cmsg_type == libc::PACKET_AUXDATA {
                    let aux = libc::CMSG_DATA(header).cast::<libc::tpacket_auxdata>();
                    let aux = aux.read_unaligned();
                    if aux.tp_status & libc::TP_STATUS_VLAN_VALID != 0 {
                        let tag = [aux.tp_vlan_tpid.to_be_bytes(), aux.tp_vlan_tci.to_be_bytes()];
                        bytes.splice(12..12, tag.concat());
                    }
                }
            }
            return Some(bytes);
        }
    }

    /// All frames that have come in.
    pub(crate) fn drain(&self) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.receive()).collect()
    }
}

/// A frame of `len` bytes of which no two are alike: the rest is a stream seeded by `number`.
pub(crate) fn frame(len: usize, number: u32) -> Vec<u8> {
    let mut bytes = vec![0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1, 0x88, 0xb5];
    bytes.extend(number.to_be_bytes());
    let mut state = number.wrapping_mul(0x9e37_79b9) | 1;
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        bytes.push(state as u8);
    }
    bytes.truncate(len);
    bytes
}

/// Two ports back to back over the core's traits: what comes in at one goes out at the other.
pub(crate) struct Patch {
    pub(crate) pool: XskPool,
    pub(crate) ports: Vec<XskPort>,
    pub(crate) guards: Vec<PortGuard>,
    /// Frames on their way to each port.
    waiting: Vec<VecDeque<(FrameHandle, FrameLen)>>,
    chunks_waiting: usize,
    chunks: usize,
    /// Frames given to a TX ring before each kick.
    pub(crate) batch: usize,
    /// Every n-th frame is dropped; 0 drops none.
    pub(crate) drop_each: usize,
    pub(crate) received: usize,
    pub(crate) dropped: usize,
}

impl Patch {
    pub(crate) fn new(configs: &[PortConfig], chunks: u32) -> Self {
        let (memory, mut pools) = Memory::new(&Layout::even(chunks, 1).unwrap()).unwrap();
        let mut pool = pools.pop().unwrap();
        let (mut ports, mut guards) = (Vec::new(), Vec::new());
        for config in configs {
            let (mut port, guard) = open_port(&memory, config).unwrap();
            port.refill(&mut pool, 0);
            ports.push(port);
            guards.push(guard);
        }
        let waiting = ports.iter().map(|_| VecDeque::new()).collect();
        Self {
            pool,
            ports,
            guards,
            waiting,
            chunks_waiting: 0,
            chunks: chunks as usize,
            batch: BURST,
            drop_each: 0,
            received: 0,
            dropped: 0,
        }
    }

    /// One round; a `blocked` patch takes frames in and sends none.
    pub(crate) fn step(&mut self, blocked: bool) -> usize {
        let mut burst: Vec<Received> = Vec::with_capacity(BURST);
        let mut done = Vec::with_capacity(BURST);
        let mut work = 0;
        for n in 0..self.ports.len() {
            self.ports[n].receive(&mut self.pool, &mut burst);
            work += burst.len();
            let to = self.ports.len() - 1 - n;
            for Received { handle, len } in burst.drain(..) {
                self.received += 1;
                if self.drop_each > 0 && self.received % self.drop_each == 0 {
                    self.pool.free(handle);
                    self.dropped += 1;
                } else {
                    self.chunks_waiting += chunks_of(len);
                    self.waiting[to].push_back((handle, len));
                }
            }
            self.ports[n].refill(&mut self.pool, 0);
        }
        for n in 0..self.ports.len() {
            let mut room = if blocked { 0 } else { self.batch };
            while let Some((handle, len)) = self.waiting[n].front().filter(|_| room > 0) {
                let token = u64::from(handle.chunk()) << 16 | u64::from(len.0);
                if !self.ports[n].transmit(&self.pool, handle.chunk(), *len, token) {
                    break;
                }
                self.chunks_waiting -= chunks_of(*len);
                self.waiting[n].pop_front();
                room -= 1;
                work += 1;
            }
            self.ports[n].kick();
            self.ports[n].completions(&mut done);
            work += done.len();
            for token in done.drain(..) {
                self.pool.free(FrameHandle::own((token >> 16) as u32));
            }
        }
        work
    }

    /// Works until nothing happens any more.
    pub(crate) fn settle(&mut self, blocked: bool) {
        while self.step(blocked) > 0 {}
    }

    /// Works until `done` holds; fails if it never does.
    pub(crate) fn until(&mut self, done: impl FnMut(&mut Self) -> bool) {
        self.work_until(false, done);
    }

    /// The same, sending nothing if `blocked`.
    pub(crate) fn work_until(&mut self, blocked: bool, mut done: impl FnMut(&mut Self) -> bool) {
        let start = Instant::now();
        while !done(self) {
            self.step(blocked);
            assert!(start.elapsed() < PATIENCE, "received {} frames", self.received);
        }
    }

    /// Every chunk is in exactly one place.
    pub(crate) fn census(&self) {
        let held: u32 = self.ports.iter().map(|p| p.held().rx + p.held().tx).sum();
        let counted = self.pool.free_chunks() + held as usize + self.chunks_waiting;
        assert_eq!(counted, self.chunks, "{} waiting", self.chunks_waiting);
    }

    /// No frame is in flight and every TX slot is free.
    pub(crate) fn idle(&self, tx_slots: usize) {
        for port in &self.ports {
            assert_eq!((port.held().tx, port.held().control), (0, 0));
            assert_eq!(port.tx_room(), tx_slots);
        }
        self.census();
    }
}

/// Chunks of a frame in copy mode: a page less the room that XDP keeps in front.
fn chunks_of(len: FrameLen) -> usize {
    usize::from(len.0).div_ceil(3840)
}
