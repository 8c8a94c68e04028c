//! What can go wrong with a port: nouns that carry the numbers and what to do.

use std::io;

/// Why a port, its memory or its namespace can't be used.
#[derive(Debug, thiserror::Error)]
pub enum XskError {
    /// The memory of frames couldn't be mapped or registered.
    #[error(
        "memory of {chunks} chunks of 4096 bytes: {step}: {source}; \
         lower the buffer or free memory; needs CAP_NET_RAW, CAP_SYS_ADMIN and CAP_IPC_LOCK"
    )]
    Memory {
        /// Chunks asked for.
        chunks: u32,
        /// What was tried.
        step: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// A layout that no switch can have.
    #[error(
        "{chunks} chunks for {workers} workers: at least one each, and at most {limit} in all"
    )]
    Layout {
        /// Chunks asked for.
        chunks: u64,
        /// Workers asked for.
        workers: usize,
        /// Chunks a descriptor can name.
        limit: u32,
    },
    /// Fewer chunks than cells, rings and reserves need (SPEC 3.1).
    #[error("memory has {have} chunks, cells and rings need {need}: raise it or lower the buffer")]
    MemoryShort {
        /// Chunks there are.
        have: u32,
        /// Chunks needed.
        need: u64,
    },
    /// No control slots are left: too many ports are open.
    #[error("{port}: all {slots} reserved PFC slots are in use: close a port first")]
    ControlSlots {
        /// The port.
        port: String,
        /// Slots there are.
        slots: u32,
    },
    /// A network namespace that can't be entered.
    #[error("netns {netns}: {source}; it must exist, and entering it needs CAP_SYS_ADMIN")]
    Netns {
        /// Its name or path.
        netns: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// No such netdev.
    #[error("{port}: no such netdev: {source}")]
    NoDevice {
        /// The port.
        port: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// A ring size that the kernel refuses.
    #[error(
        "{port}: {ring} ring of {size} entries: must be a power of two from {least} to {most}"
    )]
    RingSize {
        /// The port.
        port: String,
        /// Which ring.
        ring: &'static str,
        /// Its size.
        size: u32,
        /// Smallest size.
        least: u32,
        /// Largest size.
        most: u32,
    },
    /// More queues than the netdev has, or none.
    #[error("{port}: {asked} queues asked for, the netdev has {present}: set `queues` to match")]
    Queues {
        /// The port.
        port: String,
        /// Queues asked for.
        asked: u32,
        /// RX queues that the netdev has.
        present: u32,
    },
    /// An MTU that can't be set, or carried.
    #[error("{port}: MTU {mtu}: {source}")]
    Mtu {
        /// The port.
        port: String,
        /// The MTU.
        mtu: u32,
        /// What the kernel said.
        source: io::Error,
    },
    /// The XDP program can't be loaded.
    #[error("{port}: XDP program refused: {reason}; needs CAP_BPF, CAP_NET_ADMIN, Linux 5.15")]
    Program {
        /// The port.
        port: String,
        /// What the loader said.
        reason: String,
    },
    /// Somebody else's XDP program is there; it is never replaced (SPEC 9).
    #[error(
        "{port}: XDP program `{program}` (id {id}) is attached and isn't ours: detach it first"
    )]
    ForeignProgram {
        /// The port.
        port: String,
        /// Its name.
        program: String,
        /// Its id.
        id: u32,
    },
    /// Another holdfast has this netdev.
    #[error("{port}: in use by another holdfast (program id {id}): stop that one first")]
    SecondInstance {
        /// The port.
        port: String,
        /// The id of its program, 0 if only its socket was seen.
        id: u32,
    },
    /// The program loads, but can't be attached.
    #[error("{port}: XDP can't be attached ({mode}): {source}{hint}")]
    Attach {
        /// The port.
        port: String,
        /// Modes that were tried.
        mode: &'static str,
        /// What the kernel said.
        source: io::Error,
        /// What to do, where it is known.
        hint: &'static str,
    },
    /// Zero-copy was demanded, which no port can have.
    #[error(
        "{port}: zero-copy demanded, but all ports share one registration of the memory, which is \
         in copy mode: let the port copy"
    )]
    ZeroCopy {
        /// The port.
        port: String,
    },
    /// The AF_XDP socket of a queue.
    #[error("{port} queue {queue}: {step}: {source}")]
    Socket {
        /// The port.
        port: String,
        /// The RX queue.
        queue: u32,
        /// What was tried.
        step: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// rtnetlink or ethtool said no.
    #[error("{port}: {step}: {source}")]
    Link {
        /// The port.
        port: String,
        /// What was tried.
        step: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// A bell or a wait on file descriptors.
    #[error("{step}: {source}")]
    Wait {
        /// What was tried.
        step: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}
