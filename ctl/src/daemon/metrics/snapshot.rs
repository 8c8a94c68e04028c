//! The segment's blocks beside the names they belong to, read once for a page.

use holdfast_shm::counters::{ControlBlock, LinkBlock, PortBlock, SharedBlock, WorkerBlock};
use holdfast_shm::directory::{Directory, PortEntry};
use holdfast_shm::{Identity, SegmentError, SegmentReader};

/// What a page is made of.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) identity: Identity,
    pub(super) directory: Directory,
    /// The ports that there are now; one that has published nothing yet has all counters at 0.
    pub(super) ports: Vec<(PortEntry, PortBlock)>,
    /// Their links, in the same order.
    pub(super) links: Vec<LinkBlock>,
    pub(super) workers: Vec<WorkerBlock>,
    pub(super) shared: SharedBlock,
    pub(super) control: ControlBlock,
}

impl Snapshot {
    /// Reads everything.
    ///
    /// # Errors
    /// [`SegmentError`].
    pub(super) fn take(segment: &SegmentReader) -> Result<Self, SegmentError> {
        let directory = segment.directory()?;
        let (mut ports, mut links) = (Vec::new(), Vec::new());
        for (number, entry) in directory.ports.iter().enumerate() {
            if let Some(entry) = entry {
                let block = segment.port(number)?.unwrap_or_default();
                let block = match block.written_ns < entry.since_ns {
                    true => PortBlock { written_ns: entry.since_ns, ..PortBlock::default() },
                    false => block,
                };
                ports.push((entry.clone(), block));
                links.push(segment.link(number)?.unwrap_or_default());
            }
        }
        let workers = (0..segment.workers()).map(|n| segment.worker(n));
        let workers: Result<Vec<_>, _> = workers.collect();
        Ok(Self {
            identity: segment.identity().clone(),
            directory,
            ports,
            links,
            workers: workers?.into_iter().map(Option::unwrap_or_default).collect(),
            shared: segment.shared()?.unwrap_or_default(),
            control: segment.control()?,
        })
    }

    /// A time of the switch's clock, as seconds since 1970; its start for what was before it.
    pub(super) fn unix_seconds(&self, ns: u64) -> f64 {
        let identity = &self.identity;
        let since_start = ns.saturating_sub(identity.started_ns);
        (identity.started_unix_ns + since_start) as f64 / 1e9
    }

    /// When the oldest block was written that a worker publishes; the start of the switch where one
    /// hasn't yet.
    pub(super) fn written_ns(&self) -> u64 {
        let ports = self.ports.iter().map(|(_, block)| block.written_ns);
        let workers = self.workers.iter().map(|block| block.written_ns);
        let oldest = ports.chain(workers).chain([self.shared.written_ns]).min();
        oldest.unwrap_or_default().max(self.identity.started_ns)
    }
}
