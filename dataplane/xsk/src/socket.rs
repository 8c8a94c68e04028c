//! One AF_XDP socket: memory registration, rings, binding, statistics, wake-up.
//!
//! Every socket registers the memory for itself. Sockets that share one registration also inherit
//! the first one's mode, so a copy-mode port would take zero-copy from all others, and when its
//! netdev goes away no further port could be bound.

use crate::rings::{ConsumerRing, ProducerRing, RingParts};
use nix::libc::{self, c_int, c_void, socklen_t, xdp_desc, SOL_XDP};
use std::io;
use std::mem::{size_of, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Frames that the kernel sends in one system call where it can be told (Linux 6.18).
const TX_BUDGET: u32 = 256;
const XDP_MAX_TX_SKB_BUDGET: c_int = 9;

/// How a socket is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BindMode {
    pub(crate) zero_copy: bool,
    /// Frames of several fragments (Linux 6.6).
    pub(crate) multi: bool,
}

/// Ring sizes of one socket; without a TX ring it only receives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SocketRings {
    pub(crate) rx: u32,
    pub(crate) fill: u32,
    pub(crate) tx: Option<u32>,
    pub(crate) completion: u32,
}

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
    /// The netdev is administratively down.
    Down,
    /// The socket has lost its netdev.
    Gone,
}

/// A bound socket with its rings.
pub(crate) struct XskSocket {
    pub(crate) rx: ConsumerRing<xdp_desc>,
    pub(crate) fill: ProducerRing<u64>,
    pub(crate) tx: Option<ProducerRing<xdp_desc>>,
    pub(crate) completion: ConsumerRing<u64>,
    pub(crate) mode: BindMode,
    fd: OwnedFd,
}

impl XskSocket {
    /// Makes a socket on a queue of a netdev of the calling thread's namespace, over the memory
    /// at `extent` (address, bytes).
    pub(crate) fn bind(
        extent: (u64, u64),
        ifindex: u32,
        queue: u32,
        sizes: SocketRings,
        mode: BindMode,
    ) -> Result<Self, Step> {
        let fd = open()?;
        let register = libc::xdp_umem_reg {
            addr: extent.0,
            len: extent.1,
            chunk_size: crate::memory::CHUNK_BYTES as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        set(&fd, libc::XDP_UMEM_REG, &register, "register the memory")?;
        set(&fd, libc::XDP_UMEM_FILL_RING, &sizes.fill, "make the fill ring")?;
        set(&fd, libc::XDP_UMEM_COMPLETION_RING, &sizes.completion, "make the completion ring")?;
        set(&fd, libc::XDP_RX_RING, &sizes.rx, "make the RX ring")?;
        if let Some(tx) = sizes.tx {
            set(&fd, libc::XDP_TX_RING, &tx, "make the TX ring")?;
            // Older kernels don't know the option and send 32 frames a call; `kick` loops anyway.
            let _ = set(&fd, XDP_MAX_TX_SKB_BUDGET, &TX_BUDGET.min(tx), "set the TX budget");
        }
        let at: libc::xdp_mmap_offsets = get(&fd, libc::XDP_MMAP_OFFSETS, "find the rings")?;
        let (fill_page, completion_page) =
            (libc::XDP_UMEM_PGOFF_FILL_RING as i64, libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64);
        let rx = map::<xdp_desc>(&fd, &at.rx, sizes.rx, libc::XDP_PGOFF_RX_RING)?;
        let fill = map::<u64>(&fd, &at.fr, sizes.fill, fill_page)?;
        let completion = map::<u64>(&fd, &at.cr, sizes.completion, completion_page)?;
        let tx = match sizes.tx {
            Some(tx) => Some(map::<xdp_desc>(&fd, &at.tx, tx, libc::XDP_PGOFF_TX_RING)?),
            None => None,
        };
        bind_to(&fd, ifindex, queue, mode)?;
        let options: libc::xdp_options = get(&fd, libc::XDP_OPTIONS, "ask for the mode")?;
        let zero_copy = options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0;
        // SAFETY: each mapping was just made for this ring, is large enough for its entries, and
        // is used by this one cursor.
        unsafe {
            Ok(Self {
                rx: ConsumerRing::new(rx),
                fill: ProducerRing::new(fill),
                tx: tx.map(|parts| ProducerRing::new(parts)),
                completion: ConsumerRing::new(completion),
                mode: BindMode { zero_copy, ..mode },
                fd,
            })
        }
    }

    /// Makes the kernel look at the TX ring.
    pub(crate) fn wake_tx(&self) -> Wake {
        // SAFETY: no buffer is passed.
        let sent = unsafe {
            let flags = libc::MSG_DONTWAIT;
            libc::sendto(self.fd.as_raw_fd(), std::ptr::null(), 0, flags, std::ptr::null(), 0)
        };
        if sent >= 0 {
            return Wake::Called;
        }
        match io::Error::last_os_error().raw_os_error() {
            Some(libc::ENETDOWN) => Wake::Down,
            Some(libc::ENXIO | libc::EBADF | libc::ENODEV) => Wake::Gone,
            _ => Wake::Called,
        }
    }

    /// Makes the kernel look at the fill ring, where a zero-copy driver asks for it.
    pub(crate) fn wake_rx(&self) {
        if self.fill.needs_wakeup() {
            let flags = libc::MSG_DONTWAIT;
            let none = std::ptr::null_mut();
            // SAFETY: no buffer is passed. What it returns doesn't matter: a lost netdev shows
            // at the next TX wake-up and by rtnetlink.
            unsafe {
                libc::recvfrom(
                    self.fd.as_raw_fd(),
                    none,
                    0,
                    flags,
                    std::ptr::null_mut(),
                    std::ptr::null_mut(),
                )
            };
        }
    }

    /// The kernel's counters.
    pub(crate) fn stats(&self) -> io::Result<XskStats> {
        let raw: libc::xdp_statistics =
            get(&self.fd, libc::XDP_STATISTICS, "read statistics").map_err(|Step(_, e)| e)?;
        Ok(XskStats {
            rx_dropped: raw.rx_dropped,
            rx_invalid_descs: raw.rx_invalid_descs,
            tx_invalid_descs: raw.tx_invalid_descs,
            rx_ring_full: raw.rx_ring_full,
            rx_fill_ring_empty_descs: raw.rx_fill_ring_empty_descs,
            tx_ring_empty_descs: raw.tx_ring_empty_descs,
        })
    }
}

impl AsFd for XskSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn open() -> Result<OwnedFd, Step> {
    // SAFETY: no memory is passed.
    let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(Step("open an AF_XDP socket", io::Error::last_os_error()));
    }
    // SAFETY: the kernel has just made this descriptor, nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn set<T: Copy>(fd: &OwnedFd, option: c_int, value: &T, step: &'static str) -> Result<(), Step> {
    // SAFETY: the pointer and the length are those of `value`, which the kernel only reads.
    let done = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            SOL_XDP,
            option,
            std::ptr::from_ref(value).cast::<c_void>(),
            size_of::<T>() as socklen_t,
        )
    };
    if done < 0 {
        return Err(Step(step, io::Error::last_os_error()));
    }
    Ok(())
}

/// Reads an option that is plain data; what the kernel doesn't fill in is zero.
fn get<T: PlainOption>(fd: &OwnedFd, option: c_int, step: &'static str) -> Result<T, Step> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut len = size_of::<T>() as socklen_t;
    // SAFETY: the pointer and the length are those of `value`.
    let done = unsafe {
        let to = value.as_mut_ptr().cast::<c_void>();
        libc::getsockopt(fd.as_raw_fd(), SOL_XDP, option, to, &mut len)
    };
    if done < 0 {
        return Err(Step(step, io::Error::last_os_error()));
    }
    // SAFETY: a `PlainOption` is integers only, for which all zeros and whatever the kernel wrote
    // are values.
    Ok(unsafe { value.assume_init() })
}

/// Socket options that are integers only.
trait PlainOption: Copy {}
impl PlainOption for libc::xdp_mmap_offsets {}
impl PlainOption for libc::xdp_options {}
impl PlainOption for libc::xdp_statistics {}

/// A mapping of one ring.
struct Mapping {
    base: *mut c_void,
    bytes: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread.
unsafe impl Send for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: made by `map`, and the ring that used it is what drops it.
        unsafe { libc::munmap(self.base, self.bytes) };
    }
}

fn map<T>(
    fd: &OwnedFd,
    at: &libc::xdp_ring_offset,
    size: u32,
    page: libc::off_t,
) -> Result<RingParts<T>, Step> {
    let bytes = at.desc as usize + size as usize * size_of::<T>();
    // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
    let base = unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        libc::mmap(std::ptr::null_mut(), bytes, protection, flags, fd.as_raw_fd(), page)
    };
    if base == libc::MAP_FAILED {
        return Err(Step("map a ring", io::Error::last_os_error()));
    }
    let keep = Mapping { base, bytes };
    let place = |offset: u64| base.wrapping_byte_add(offset as usize);
    Ok(RingParts {
        producer: place(at.producer).cast(),
        consumer: place(at.consumer).cast(),
        flags: place(at.flags).cast(),
        entries: place(at.desc).cast(),
        size,
        keep: Box::new(keep),
    })
}

fn bind_to(fd: &OwnedFd, ifindex: u32, queue: u32, mode: BindMode) -> Result<(), Step> {
    let copy = if mode.zero_copy { libc::XDP_ZEROCOPY } else { libc::XDP_COPY };
    let multi = if mode.multi { libc::XDP_USE_SG } else { 0 };
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: copy | multi | libc::XDP_USE_NEED_WAKEUP,
        sxdp_ifindex: ifindex,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: 0,
    };
    // SAFETY: the pointer and the length are those of `address`, which the kernel only reads.
    let done = unsafe {
        let at = std::ptr::from_ref(&address).cast::<libc::sockaddr>();
        libc::bind(fd.as_raw_fd(), at, size_of::<libc::sockaddr_xdp>() as socklen_t)
    };
    if done < 0 {
        return Err(Step("bind", io::Error::last_os_error()));
    }
    Ok(())
}
