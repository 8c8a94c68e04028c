//! What bring-up changes, as it was before: enough to put it back in this process or in the next
//! one, after a kill (SPEC 9).
//!
//! A setting enters the [`UndoLog`] before it is changed and leaves it when it was put back, so at
//! any moment the log names all that can be changed. Putting back what wasn't changed yet, or is
//! back already, does nothing.

use crate::ethtool::{Channels, Ethtool, Pause};
use crate::netns::{NetnsHandle, NetnsMark};
use crate::open::{BUSY_PAUSE, BUSY_TRIES};
use crate::rtnetlink::{Netdev, Rtnetlink, Which};
use nix::libc;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// A setting of a netdev as it was before the switch changed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Original {
    /// Whose setting.
    pub netdev: NetdevMark,
    /// What it was.
    pub was: Setting,
}

/// Which netdev: by this it is known again in another process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetdevMark {
    /// Its namespace.
    pub netns: NetnsMark,
    /// Its index there.
    pub ifindex: u32,
    /// Its name.
    pub ifname: String,
    /// Its MAC address.
    pub mac: String,
}

/// A setting with its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Setting {
    /// An offload that was on, by its name (`ethtool -k`).
    Offload(String),
    /// Queues of each kind (`ethtool -l`).
    Channels {
        /// Receiving only.
        rx: u32,
        /// Sending only.
        tx: u32,
        /// Neither.
        other: u32,
        /// Both.
        combined: u32,
    },
    /// 802.3x (`ethtool -a`).
    Pause {
        /// Negotiated.
        autoneg: bool,
        /// Obeyed.
        rx: bool,
        /// Sent.
        tx: bool,
    },
    /// Bytes.
    Mtu(u32),
    /// The link was administratively down.
    AdminDown,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Offload(name) => write!(f, "{name} on"),
            Self::Channels { rx, tx, other, combined } => {
                write!(f, "channels rx {rx} tx {tx} other {other} combined {combined}")
            }
            Self::Pause { autoneg, rx, tx } => write!(f, "pause autoneg {autoneg} rx {rx} tx {tx}"),
            Self::Mtu(mtu) => write!(f, "mtu {mtu}"),
            Self::AdminDown => f.write_str("link down"),
        }
    }
}

impl fmt::Display for NetdevMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.netns.name, self.ifname)
    }
}

impl fmt::Display for Original {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.netdev, self.was)
    }
}

/// How a netdev is known again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// By namespace and index: in the process that changed it. It may have a new name meanwhile.
    ByIndex,
    /// By name and MAC address as well: in another process.
    ByAll,
}

/// What putting back came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The netdev or its namespace is gone, or another one has its place.
    Gone,
    /// It was so already.
    Unchanged,
    /// It was changed back.
    PutBack,
}

impl NetdevMark {
    pub(crate) fn new(netns: &NetnsHandle, dev: &Netdev) -> Self {
        let (ifname, mac) = (dev.name.clone(), dev.mac.to_string());
        Self { netns: netns.mark(), ifindex: dev.index, ifname, mac }
    }

    fn is(&self, dev: &Netdev) -> bool {
        self.ifname == dev.name && self.mac == dev.mac.to_string()
    }
}

impl Setting {
    pub(crate) fn channels(now: Channels) -> Self {
        let Channels { rx, tx, other, combined, .. } = now;
        Self::Channels { rx, tx, other, combined }
    }

    pub(crate) const fn pause(now: Pause) -> Self {
        let Pause { autoneg, rx, tx } = now;
        Self::Pause { autoneg, rx, tx }
    }

    /// Whether `other` is the same setting, whatever its value.
    fn same_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Offload(one), Self::Offload(other)) => one == other,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    fn put_back(&self, netlink: &Rtnetlink, dev: &Netdev) -> io::Result<Outcome> {
        let set = |changed: bool| if changed { Outcome::PutBack } else { Outcome::Unchanged };
        let ethtool = || Ethtool::open(&dev.name);
        match self {
            Self::Offload(name) => {
                let ethtool = ethtool()?;
                let off = |f: &crate::ethtool::Feature| f.name == *name && !f.active;
                let off: Vec<_> = ethtool.features()?.into_iter().filter(off).collect();
                ethtool.switch(&off, true)?;
                Ok(set(!off.is_empty()))
            }
            Self::Channels { rx, tx, other, combined } => {
                let ethtool = ethtool()?;
                let now = ethtool.channels()?;
                let (rx, tx, other, combined) = (*rx, *tx, *other, *combined);
                let was = Channels { rx, tx, other, combined, ..now };
                if now != was {
                    when_free(|| ethtool.set_channels(was))?;
                }
                Ok(set(now != was))
            }
            Self::Pause { autoneg, rx, tx } => {
                let ethtool = ethtool()?;
                let was = Pause { autoneg: *autoneg, rx: *rx, tx: *tx };
                let changed = ethtool.pause()? != was;
                if changed {
                    ethtool.set_pause(was)?;
                }
                Ok(set(changed))
            }
            Self::Mtu(mtu) => {
                if dev.mtu != *mtu {
                    netlink.set_mtu(dev.index, *mtu)?;
                }
                Ok(set(dev.mtu != *mtu))
            }
            Self::AdminDown => {
                if dev.admin_up {
                    netlink.set_up(dev.index, false)?;
                }
                Ok(set(dev.admin_up))
            }
        }
    }
}

/// A queue stays taken for a while after its last socket was closed, and as long as it is the
/// kernel calls some changes of the channels invalid.
fn when_free(mut set: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    for _ in 0..BUSY_TRIES {
        match set() {
            Err(e) if matches!(e.raw_os_error(), Some(libc::EINVAL | libc::EBUSY)) => {
                std::thread::sleep(BUSY_PAUSE);
            }
            done => return done,
        }
    }
    set()
}

impl Original {
    /// Puts it back, if the netdev is still there and still the same one.
    pub(crate) fn put_back(&self, known: Known) -> io::Result<Outcome> {
        let Some(netns) = self.netdev.netns.find() else { return Ok(Outcome::Gone) };
        let work = || {
            let netlink = Rtnetlink::open()?;
            match netlink.netdev(Which::Index(self.netdev.ifindex)) {
                Ok(dev) if known == Known::ByIndex || self.netdev.is(&dev) => {
                    self.was.put_back(&netlink, &dev)
                }
                Ok(_) => Ok(Outcome::Gone),
                Err(error) if is_gone(&error) => Ok(Outcome::Gone),
                Err(error) => Err(error),
            }
        };
        netns.run(work).map_err(io::Error::other)?
    }

    fn same_as(&self, other: &Self) -> bool {
        self.netdev == other.netdev && self.was.same_as(&other.was)
    }
}

fn is_gone(error: &io::Error) -> bool {
    use nix::libc::{ENODEV, ENXIO};
    matches!(error.raw_os_error(), Some(ENODEV | ENXIO))
}

/// What became of settings that a process left changed.
#[derive(Debug, Default)]
pub struct PutBack {
    /// Put back.
    pub done: Vec<Original>,
    /// Nothing to do: their netdevs or namespaces are gone.
    pub gone: Vec<Original>,
    /// Refused, with what the system said; in the order in which they were changed.
    pub failed: Vec<(Original, io::Error)>,
}

/// Puts back what a process left that ended without doing so, the last change first. `left` is in
/// the order of its [`UndoLog`].
pub fn put_back(left: Vec<Original>) -> PutBack {
    let mut all = PutBack::default();
    for original in left.into_iter().rev() {
        match original.put_back(Known::ByAll) {
            Ok(Outcome::PutBack) => all.done.push(original),
            Ok(Outcome::Unchanged) => {}
            Ok(Outcome::Gone) => all.gone.push(original),
            Err(error) => all.failed.push((original, error)),
        }
    }
    all.failed.reverse();
    all
}

/// Is given all that would have to be put back, in order, whenever that changes.
type Keep = Box<dyn FnMut(&[Original]) + Send>;

/// All that the ports of a process have to put back, in the order in which it was changed. Clones
/// are the same log. The default one isn't kept anywhere: what it names is lost with the process.
#[derive(Clone, Default)]
pub struct UndoLog(Option<Arc<Mutex<Kept>>>);

struct Kept {
    originals: Vec<Original>,
    keep: Keep,
}

impl fmt::Debug for UndoLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UndoLog")
    }
}

impl UndoLog {
    /// A log that is kept by `keep`, which is called with all of it before a setting is changed
    /// and after one was put back. `older` is what an earlier process left and couldn't be put
    /// back: it stays in the log.
    pub fn new(older: Vec<Original>, keep: impl FnMut(&[Original]) + Send + 'static) -> Self {
        let mut kept = Kept { originals: older, keep: Box::new(keep) };
        kept.write();
        Self(Some(Arc::new(Mutex::new(kept))))
    }

    /// To be called before these are changed.
    pub(crate) fn add(&self, originals: &[Original]) {
        self.edit(|kept| {
            let before = kept.originals.len();
            for original in originals {
                // What an earlier process found is the true original.
                if !kept.originals.iter().any(|older| older.same_as(original)) {
                    kept.originals.push(original.clone());
                }
            }
            kept.originals.len() != before
        });
    }

    /// To be called after these were put back, or weren't changed after all.
    pub(crate) fn remove(&self, originals: &[Original]) {
        self.edit(|kept| {
            let before = kept.originals.len();
            kept.originals.retain(|original| !originals.contains(original));
            kept.originals.len() != before
        });
    }

    fn edit(&self, change: impl FnOnce(&mut Kept) -> bool) {
        let Some(kept) = &self.0 else { return };
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if change(&mut kept) {
            kept.write();
        }
    }
}

impl Kept {
    fn write(&mut self) {
        (self.keep)(&self.originals);
    }
}

#[cfg(test)]
mod tests;
