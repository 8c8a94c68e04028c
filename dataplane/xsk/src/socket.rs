//! AF_XDP sockets by xsk-rs: the one that registers the memory, and those of the ports.
//!
//! The memory is registered once, by the socket that is bound first; all others share it. The
//! kernel knows the registration by that socket's descriptor, and when its netdev goes away no
//! further socket can be bound. So the first one is an anchor on a netdev that stays: a loopback.

use crate::memory::CHUNK_BYTES;
use crate::sizing::SHARED_RING;
use nix::fcntl::{fcntl, FcntlArg, FdFlag};
use nix::libc::{self, c_int, c_void, socklen_t, SOL_XDP};
use std::error::Error;
use std::io;
use std::num::NonZeroU32;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use xsk_rs::config::{
    BindFlags, FrameSize, Interface, LibxdpFlags, QueueSize, SocketConfig, UmemConfig,
};
use xsk_rs::{CompQueue, FillQueue, FrameDesc, RxQueue, Socket, TxQueue, Umem};

/// Frames that the kernel sends in one system call where it can be told (Linux 6.18).
const TX_BUDGET: u32 = 256;
/// The option that tells it; xsk-rs has no call for it.
const XDP_MAX_TX_SKB_BUDGET: c_int = 9;
/// Entries of a ring that is never used; the kernel wants it nevertheless.
pub(crate) const UNUSED_RING: u32 = 64;

/// A failed step of making a socket.
#[derive(Debug)]
pub(crate) struct Step(pub(crate) &'static str, pub(crate) io::Error);

/// What the kernel counts at a socket (`struct xdp_statistics`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XskStats {
    /// Received frames dropped for other reasons than those below.
    pub rx_dropped: u64,
    /// Descriptors in the fill ring that were invalid.
    pub rx_invalid_descs: u64,
    /// Descriptors in the TX ring that were invalid.
    pub tx_invalid_descs: u64,
    /// Received frames dropped because the RX ring was full.
    pub rx_ring_full: u64,
    /// Times the fill ring had no chunk for a received frame, which was dropped.
    pub rx_fill_ring_empty_descs: u64,
    /// Times the TX ring was found empty.
    pub tx_ring_empty_descs: u64,
}

impl XskStats {
    /// Received frames that were lost before the switch saw them (SPEC 4.3). In copy mode an empty
    /// fill ring is counted as a dropped frame too, in zero-copy mode it is not.
    pub fn receive_overruns(&self) -> u64 {
        self.rx_dropped.max(self.rx_fill_ring_empty_descs) + self.rx_ring_full
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            rx_dropped: self.rx_dropped + other.rx_dropped,
            rx_invalid_descs: self.rx_invalid_descs + other.rx_invalid_descs,
            tx_invalid_descs: self.tx_invalid_descs + other.tx_invalid_descs,
            rx_ring_full: self.rx_ring_full + other.rx_ring_full,
            rx_fill_ring_empty_descs: self.rx_fill_ring_empty_descs
                + other.rx_fill_ring_empty_descs,
            tx_ring_empty_descs: self.tx_ring_empty_descs + other.tx_ring_empty_descs,
        }
    }
}

/// What a wake-up came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    /// Done, or to be tried again.
    Called,
    /// The socket has lost its netdev.
    Gone,
}

/// The memory, and the socket that holds its registration.
pub(crate) struct Registration {
    pub(crate) umem: Umem,
    /// A descriptor of each chunk, in order.
    pub(crate) descs: Vec<FrameDesc>,
    pub(crate) anchor: XskSocket,
    /// Whether frames may have several fragments (Linux 6.6).
    pub(crate) fragments: bool,
}

/// Maps and registers memory of `chunks` chunks. The calling thread is in a namespace of its own:
/// on a loopback that is shared another process may have the queue.
pub(crate) fn register(chunks: u32) -> Result<Registration, Step> {
    let count = NonZeroU32::new(chunks).unwrap_or(NonZeroU32::MIN);
    let (umem, descs) =
        Umem::new(umem_config()?, count, false).map_err(|e| Step("register", cause(&e)))?;
    // Copying, because every socket inherits the mode and a veth has no other.
    let copy = BindFlags::XDP_COPY | BindFlags::XDP_USE_NEED_WAKEUP;
    let bind = |flags| XskSocket::bind(&umem, "lo", 0, (UNUSED_RING, UNUSED_RING), flags);
    let (anchor, fragments) = match bind(copy | BindFlags::XDP_USE_SG) {
        Ok(anchor) => (anchor, true),
        Err(_) => (bind(copy)?, false),
    };
    Ok(Registration { umem, descs, anchor, fragments })
}

fn umem_config() -> Result<UmemConfig, Step> {
    let wrong = |e: &dyn Error| Step("size the memory", cause(e));
    let ring = ring_size(SHARED_RING)?;
    let chunk = FrameSize::new(CHUNK_BYTES as u32).map_err(|e| wrong(&e))?;
    UmemConfig::builder()
        .frame_size(chunk)
        .fill_queue_size(ring)
        .comp_queue_size(ring)
        .build()
        .map_err(|e| wrong(&e))
}

fn ring_size(entries: u32) -> Result<QueueSize, Step> {
    QueueSize::new(entries).map_err(|e| Step("size a ring", cause(&e)))
}

/// A bound socket with its rings.
pub(crate) struct XskSocket {
    pub(crate) rx: RxQueue,
    pub(crate) fill: FillQueue,
    pub(crate) tx: TxQueue,
    pub(crate) completion: CompQueue,
    /// Entries of the TX ring.
    tx_entries: u32,
}

impl XskSocket {
    /// Binds a socket to a queue of a netdev of the calling thread's namespace, with an RX and a
    /// TX ring of these sizes. Mode and fragments are the anchor's.
    pub(crate) fn share(
        umem: &Umem,
        ifname: &str,
        queue: u32,
        rings: (u32, u32),
    ) -> Result<Self, Step> {
        // The kernel takes no flags from a socket that shares.
        Self::bind(umem, ifname, queue, rings, BindFlags::empty())
    }

    fn bind(
        umem: &Umem,
        ifname: &str,
        queue: u32,
        (rx, tx): (u32, u32),
        flags: BindFlags,
    ) -> Result<Self, Step> {
        let name: Interface = ifname.parse().map_err(|e| Step("name the netdev", cause(&e)))?;
        let config = SocketConfig::builder()
            .rx_queue_size(ring_size(rx)?)
            .tx_queue_size(ring_size(tx)?)
            .libxdp_flags(LibxdpFlags::XSK_LIBXDP_FLAGS_INHIBIT_PROG_LOAD)
            .bind_flags(flags)
            .build();
        // SAFETY: no program is loaded by libxdp, so none can be detached twice.
        let made = unsafe { Socket::new(config, umem, &name, queue) };
        let (tx_queue, rx_queue, rings) = made.map_err(|e| Step("bind", cause(&e)))?;
        let Some((fill, completion)) = rings else {
            // A socket of this process, over this memory, has the queue.
            return Err(Step("bind", io::Error::from_raw_os_error(libc::EBUSY)));
        };
        let socket = Self { rx: rx_queue, fill, tx: tx_queue, completion, tx_entries: tx };
        let keep = FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC);
        fcntl(socket.as_fd(), keep).map_err(|e| Step("close the socket on exec", e.into()))?;
        // Older kernels don't know the option and send 32 frames a call; `kick` loops anyway.
        let _ = socket.set(XDP_MAX_TX_SKB_BUDGET, TX_BUDGET.min(tx));
        Ok(socket)
    }

    /// Descriptors in the TX ring that the kernel hasn't taken yet.
    #[inline]
    pub(crate) fn unsent(&mut self) -> u32 {
        self.tx_entries - self.tx.nb_free_exact()
    }

    /// Makes the kernel look at the TX ring.
    #[inline]
    pub(crate) fn wake_tx(&self) -> Wake {
        match self.tx.wakeup().map_err(|e| e.raw_os_error()) {
            Err(Some(libc::ENXIO | libc::EBADF | libc::ENODEV)) => Wake::Gone,
            _ => Wake::Called,
        }
    }

    /// The kernel's counters.
    pub(crate) fn stats(&self) -> io::Result<XskStats> {
        let raw = self.rx.fd().xdp_statistics()?;
        Ok(XskStats {
            rx_dropped: raw.rx_dropped(),
            rx_invalid_descs: raw.rx_invalid_descs(),
            tx_invalid_descs: raw.tx_invalid_descs(),
            rx_ring_full: raw.rx_ring_full(),
            rx_fill_ring_empty_descs: raw.rx_fill_ring_empty_descs(),
            tx_ring_empty_descs: raw.tx_ring_empty_descs(),
        })
    }

    fn set(&self, option: c_int, value: u32) -> io::Result<()> {
        // SAFETY: the pointer and the length are those of `value`, which the kernel only reads.
        let done = unsafe {
            libc::setsockopt(
                self.as_fd().as_raw_fd(),
                SOL_XDP,
                option,
                std::ptr::from_ref(&value).cast::<c_void>(),
                size_of::<u32>() as socklen_t,
            )
        };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

impl AsFd for XskSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as the queues, which `self` owns.
        unsafe { BorrowedFd::borrow_raw(self.rx.fd().as_raw_fd()) }
    }
}

/// What the kernel said, out of an error of xsk-rs that tells it as its source.
fn cause(error: &dyn Error) -> io::Error {
    let code = error.source().and_then(|e| e.downcast_ref::<io::Error>()?.raw_os_error());
    code.map_or_else(|| io::Error::other(error.to_string()), io::Error::from_raw_os_error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netns;

    #[test]
    fn what_the_kernel_said_is_kept() {
        let (umem, _) = Umem::new(umem_config().unwrap(), NonZeroU32::MIN, false).unwrap();
        let Err(Step(step, error)) = XskSocket::share(&umem, "no-such-netdev", 0, (64, 64)) else {
            panic!("bound to nothing");
        };
        assert_eq!((step, error.raw_os_error()), ("bind", Some(libc::ENODEV)));
    }

    #[test]
    fn a_queue_is_bound_once() {
        let again = |made: Result<Registration, Step>| {
            let made = made.unwrap();
            XskSocket::share(&made.umem, "lo", 0, (64, 64)).err().map(|Step(_, e)| e)
        };
        let error = netns::run_in_new(|| again(register(8))).unwrap().unwrap();
        assert_eq!(error.raw_os_error(), Some(libc::EBUSY));
    }
}
