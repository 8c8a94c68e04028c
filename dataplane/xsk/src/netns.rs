//! Network namespaces: named ones, those of processes, and how to work inside of one.

use crate::error::XskError;
use crate::socket::Step;
use nix::sched::{setns, unshare, CloneFlags};
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where `ip netns` keeps the named ones.
pub(crate) const NAMED: &str = "/run/netns";

/// Runs `work` in a network namespace made for it, on a thread of its own. The namespace goes with
/// the last socket that the work leaves in it.
pub(crate) fn run_in_new<R: Send>(work: impl FnOnce() -> R + Send) -> Result<R, Step> {
    let refused = |source: io::Error| Step("make a namespace for the anchor", source);
    let inside = || unshare(CloneFlags::CLONE_NEWNET).map(|()| work());
    std::thread::scope(|threads| {
        let thread = std::thread::Builder::new().name("anchor".into());
        let thread = thread.spawn_scoped(threads, inside).map_err(refused)?;
        let ended = thread.join().map_err(|_| refused(io::Error::other("the work panicked")))?;
        ended.map_err(|e| refused(e.into()))
    })
}

/// Which network namespace a netdev is in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Netns {
    /// The process's own.
    #[default]
    Own,
    /// One that `ip netns add` made.
    Named(String),
    /// A file that stands for one, like `/proc/PID/ns/net`.
    Path(PathBuf),
}

impl Netns {
    /// As a config says it: a name, a path if it has a slash, or nothing for one's own.
    pub fn parse(text: Option<&str>) -> Self {
        match text {
            None | Some("") => Self::Own,
            Some(path) if path.contains('/') => Self::Path(path.into()),
            Some(name) => Self::Named(name.to_owned()),
        }
    }

    /// Opens it, so that it can be entered even after its name is gone.
    ///
    /// # Errors
    /// [`XskError::Netns`] if there is no such namespace.
    pub fn open(&self) -> Result<NetnsHandle, XskError> {
        let path = match self {
            Self::Own => PathBuf::from("/proc/thread-self/ns/net"),
            Self::Named(name) => Path::new(NAMED).join(name),
            Self::Path(path) => path.clone(),
        };
        NetnsHandle::open(&path, self.to_string())
    }
}

impl fmt::Display for Netns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own => f.write_str("own"),
            Self::Named(name) => f.write_str(name),
            Self::Path(path) => write!(f, "{}", path.display()),
        }
    }
}

/// An open network namespace: it stays alive as long as the handle, so keep none for long. What
/// must be found again later is a [`NetnsMark`].
#[derive(Clone, Debug)]
pub struct NetnsHandle {
    file: Arc<File>,
    path: PathBuf,
    name: String,
}

/// Where a namespace was and which one it was, without keeping it alive.
#[derive(Clone, Debug)]
pub(crate) struct NetnsMark {
    path: PathBuf,
    name: String,
    inode: u64,
}

impl NetnsMark {
    /// The namespace, if it is still there and still the same one.
    pub(crate) fn find(&self) -> Option<NetnsHandle> {
        let found = NetnsHandle::open(&self.path, self.name.clone()).ok()?;
        (found.inode() == Some(self.inode)).then_some(found)
    }
}

impl NetnsHandle {
    pub(crate) fn open(path: &Path, name: String) -> Result<Self, XskError> {
        match File::open(path) {
            Ok(file) => Ok(Self { file: Arc::new(file), path: path.to_owned(), name }),
            Err(source) => Err(XskError::Netns { netns: name, source }),
        }
    }

    /// Its name or path.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn inode(&self) -> Option<u64> {
        self.file.metadata().ok().map(|file| file.ino())
    }

    /// How to find it again.
    pub(crate) fn mark(&self) -> NetnsMark {
        let inode = self.inode().unwrap_or(0);
        NetnsMark { path: self.path.clone(), name: self.name.clone(), inode }
    }

    /// Runs `work` inside, on a thread of its own: a thread that has changed its namespace is
    /// never used for anything else.
    ///
    /// # Errors
    /// [`XskError::Netns`] if it can't be entered, or the work didn't come to its end.
    pub fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> Result<R, XskError> {
        let refused = |source: io::Error| XskError::Netns { netns: self.name.clone(), source };
        let inside = || setns(self.file.as_fd(), CloneFlags::CLONE_NEWNET).map(|()| work());
        std::thread::scope(|threads| {
            let thread = std::thread::Builder::new().name("netns".into());
            let thread = thread.spawn_scoped(threads, inside).map_err(refused)?;
            let ended =
                thread.join().map_err(|_| refused(io::Error::other("the work panicked")))?;
            ended.map_err(|e| refused(e.into()))
        })
    }
}

impl AsFd for NetnsHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_makes_a_path() {
        assert_eq!(Netns::parse(None), Netns::Own);
        assert_eq!(Netns::parse(Some("h1")), Netns::Named("h1".into()));
        assert_eq!(Netns::parse(Some("/proc/1/ns/net")), Netns::Path("/proc/1/ns/net".into()));
    }

    #[test]
    fn a_missing_namespace_is_named() {
        let error = Netns::Named("holdfast-no-such".into()).open().unwrap_err();
        assert!(error.to_string().contains("holdfast-no-such"), "{error}");
    }
}
