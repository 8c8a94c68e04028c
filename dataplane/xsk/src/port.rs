//! A port's rings as the core sees them.

use crate::clock;
use crate::link::LinkState;
use crate::loader::{PortMaps, XdpCounters};
use crate::memory::{Memory, Shared};
use crate::pool::XskPool;
use crate::rx::Receiver;
use crate::sizing::CONTROL_SLOTS;
use crate::socket::{Wake, XskSocket, XskStats};
use crate::tx::Sender;
use holdfast_core::io::{Losses, PortIo, Received, Remains};
use holdfast_core::units::{FrameLen, Time};
use holdfast_wire::mac_control::FRAME_LEN;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// Chunks that a port has now: for counting every frame once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// On the receiving side: fill ring, kernel, RX ring, half-received frames.
    pub rx: u32,
    /// Of data frames that `transmit` took and `completions` hasn't given back.
    pub tx: u32,
    /// Of MAC control frames in flight.
    pub control: u32,
}

/// One AF_XDP port: a socket for each RX queue, sending over the first.
///
/// Dropping it closes the sockets, but only [`XskPort::close`] gives the chunks back that the
/// rings hold.
pub struct XskPort {
    rx: Receiver,
    tx: Sender,
    shared: Arc<Shared>,
    link: Arc<LinkState>,
    /// `None` at a port that is closed.
    maps: Option<PortMaps>,
    /// The sockets are in the XDP program's map. Not before the fill rings are stocked, or the
    /// first frames would be counted as lost.
    serving: bool,
    /// What the XDP program was told.
    pressed: bool,
}

impl XskPort {
    pub(crate) fn new(
        memory: &Memory,
        sockets: Vec<XskSocket>,
        rings: (u32, u32),
        control: Vec<u32>,
        link: Arc<LinkState>,
        maps: PortMaps,
    ) -> Self {
        let shared = Arc::clone(&memory.0);
        let rx = Receiver::new(sockets, rings.0, shared.chunks());
        let tx = Sender::new(Arc::clone(&shared), rings.1, control);
        Self { rx, tx, shared, link, maps: Some(maps), serving: false, pressed: false }
    }

    /// A port that is closed: no sockets, no rings, and down. It stands where an open one was and
    /// will be.
    pub fn closed(memory: &Memory) -> Self {
        let shared = Arc::clone(&memory.0);
        let rx = Receiver::new(Vec::new(), 0, 0);
        let tx = Sender::new(Arc::clone(&shared), CONTROL_SLOTS, Vec::new());
        let link = Arc::new(LinkState::new(false));
        Self { rx, tx, shared, link, maps: None, serving: false, pressed: false }
    }

    /// File descriptors to sleep on: readable when a frame has come.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.rx.sockets().map(AsFd::as_fd)
    }

    /// What the kernel counted, all queues together.
    ///
    /// # Errors
    /// What the system call says, for a socket that is broken.
    pub fn stats(&self) -> io::Result<XskStats> {
        self.rx.stats()
    }

    /// What the XDP program counted.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn xdp_counters(&self) -> io::Result<XdpCounters> {
        self.maps.as_ref().map_or_else(|| Ok(XdpCounters::default()), PortMaps::counters)
    }

    /// Frames that never reached the core, by reason, since the port was opened.
    ///
    /// # Errors
    /// What the system calls say, for a socket that is broken.
    pub fn losses(&self) -> io::Result<Losses> {
        let (stats, xdp, discards) = (self.stats()?, self.xdp_counters()?, self.rx.discards);
        // A descriptor that names no memory of ours was a frame once: lost, of whatever class.
        Ok(Losses {
            overrun: stats.receive_overruns() + discards.invalid,
            rx_pressure_lossy: xdp.rx_pressure_lossy,
            runt: xdp.runt,
            too_long: discards.too_long,
        })
    }

    /// Chunks that the port has now.
    pub fn held(&self) -> Held {
        Held { rx: self.rx.held(&self.shared), tx: self.tx.used(), control: self.tx.control_used() }
    }

    /// The link's state, shared with the port's [`crate::PortGuard`].
    pub fn link(&self) -> &Arc<LinkState> {
        &self.link
    }

    /// Whether the XDP program drops lossy frames now (SPEC 4.3).
    pub fn under_rx_pressure(&self) -> bool {
        self.pressed
    }

    /// Closes the sockets, and says what was in their rings: each chunk and each frame once, which
    /// a worker must take back. Not for a worker to call: the kernel makes who closes a socket wait
    /// until no driver uses it. Copies of [`XskPort::fds`] must be closed before, or the kernel
    /// keeps the sockets.
    pub fn close(self) -> Remains {
        // A socket that is broken has told its losses before.
        let losses = self.losses().unwrap_or_default();
        let Self { rx, tx, shared, maps, .. } = self;
        if let Some(maps) = maps {
            maps.retire(rx.sockets().count());
        }
        let chunks = rx.close(&shared);
        let (tokens, control) = tx.close();
        shared.give_control(control);
        Remains { chunks, tokens, losses }
    }

    /// Tells the XDP program to shed lossy frames while an RX ring is above 3/4, until it is
    /// below half.
    fn watch_pressure(&mut self) {
        let (waiting, ring) = self.rx.fullest();
        let pressed = if self.pressed { waiting > ring / 2 } else { waiting > ring / 4 * 3 };
        let told = |maps: &PortMaps| maps.set_rx_pressure(pressed);
        if pressed != self.pressed && self.maps.as_ref().is_some_and(told) {
            self.pressed = pressed;
        }
    }
}

impl PortIo for XskPort {
    type Pool = XskPool;

    fn receive(&mut self, pool: &mut XskPool, into: &mut Vec<Received>) {
        if self.link.is_up() {
            self.watch_pressure();
            self.rx.receive(pool, into);
        }
    }

    /// Counts descriptors: a jumbo frame counts once for each fragment.
    fn rx_backlog(&mut self) -> u32 {
        self.rx.backlog()
    }

    fn rx_ring(&self) -> u32 {
        self.rx.entries()
    }

    fn refill(&mut self, pool: &mut XskPool, kept: u32) {
        self.rx.refill(pool, kept);
        if !self.serving {
            self.serving = match &self.maps {
                Some(maps) => maps.serve(self.rx.sockets()),
                None => true,
            };
        }
    }

    fn tx_room(&self) -> usize {
        self.tx.room() as usize
    }

    fn transmit(&mut self, _pool: &XskPool, chunk: u32, _len: FrameLen, token: u64) -> bool {
        self.link.is_up() && self.tx.stage(chunk, token)
    }

    fn transmit_control(&mut self, bytes: &[u8; FRAME_LEN]) -> bool {
        self.link.is_up() && self.tx.stage_control(bytes)
    }

    fn kick(&mut self) -> Time {
        if let Some(socket) = self.rx.first() {
            // That a netdev is administratively down is left to rtnetlink: only there the news of
            // its coming back is in order with it.
            if self.tx.kick(socket) == Wake::Gone {
                self.link.set_gone();
            }
        }
        clock::now()
    }

    fn clock(&self) -> Time {
        clock::now()
    }

    fn completions(&mut self, done: &mut Vec<u64>) {
        let Some(socket) = self.rx.first() else { return };
        if self.link.is_gone() {
            self.tx.abandon(done);
        } else {
            self.tx.complete(socket, done);
        }
    }

    fn is_up(&self) -> bool {
        self.link.is_up()
    }
}
