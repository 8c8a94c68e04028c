//! Network namespaces: named ones, those of processes, and how to work inside of one.

use crate::error::XskError;
use crate::socket::Step;
use nix::libc;
use nix::sched::{setns, unshare, CloneFlags};
use nix::sys::socket::{socket, AddressFamily, SockFlag, SockType};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where `ip netns` keeps the named ones.
pub(crate) const NAMED: &str = "/run/netns";

/// Processes that are looked at for namespaces without a name.
const PROCESS_LIMIT: usize = 65_536;
/// The socket option that tells the cookie of a socket's namespace (Linux 5.14).
const SO_NETNS_COOKIE: libc::c_int = 71;

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

/// Where a namespace was and which one it was, without keeping it alive; also for a process to
/// come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetnsMark {
    /// The file by which it was opened.
    pub path: String,
    /// What it is called in messages.
    pub name: String,
    /// Its inode. The kernel gives that of a namespace that went to the next one that is made.
    pub inode: u64,
    /// What the kernel calls it until the next boot and gives to no other one; 0 if unknown.
    pub cookie: u64,
}

impl NetnsMark {
    /// The namespace, if it still can be found and is still the same one: where it was, else among
    /// those with a name, this process's own and those of other processes.
    pub(crate) fn find(&self) -> Option<NetnsHandle> {
        let open = |path: &Path, name: &str| {
            let found = NetnsHandle::open(path, name.to_owned()).ok()?;
            self.is(&found).then_some(found)
        };
        open(Path::new(&self.path), &self.name).or_else(|| {
            let mut others = places().filter(|(path, _)| inode(path) == Some(self.inode));
            others.find_map(|(path, name)| open(&path, &name))
        })
    }

    fn is(&self, found: &NetnsHandle) -> bool {
        found.inode() == Some(self.inode) && (self.cookie == 0 || found.cookie() == self.cookie)
    }
}

/// Where namespaces can be found: the named ones first, then those of processes. The same one can
/// come several times.
pub(crate) fn places() -> impl Iterator<Item = (PathBuf, String)> {
    let entries = |folder: &str| fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries(NAMED)
        .map(|entry| (entry.path(), entry.file_name().to_string_lossy().into_owned()));
    let processes = entries("/proc").take(PROCESS_LIMIT).filter_map(|entry| {
        let name = entry.file_name();
        let process = name.to_string_lossy().bytes().all(|byte| byte.is_ascii_digit());
        let path = Path::new("/proc").join(&name).join("ns/net");
        process.then(|| (path.clone(), path.display().to_string()))
    });
    named.chain(processes)
}

/// The inode of a namespace's file.
pub(crate) fn inode(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|file| file.ino())
}

impl NetnsHandle {
    pub(crate) fn open(path: &Path, name: String) -> Result<Self, XskError> {
        // Not blocking: it may be a pipe, which setns refuses and not the one who opens it.
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
        match file {
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
        NetnsMark {
            path: self.path.to_string_lossy().into_owned(),
            name: self.name.clone(),
            inode: self.inode().unwrap_or(0),
            cookie: self.cookie(),
        }
    }

    /// What the kernel calls it, 0 if it doesn't say.
    fn cookie(&self) -> u64 {
        self.run(|| cookie_here().unwrap_or(0)).unwrap_or(0)
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

/// The cookie of the calling thread's namespace.
fn cookie_here() -> io::Result<u64> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let fd = socket(AddressFamily::Unix, SockType::Datagram, flags, None)?;
    let mut cookie = 0u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `cookie` and the length to `length`;
    // both live until the call returns.
    let done = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_NETNS_COOKIE,
            std::ptr::from_mut(&mut cookie).cast(),
            &mut length,
        )
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(cookie)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A namespace whose path is another's now is found among those of processes, and one that
    /// never was isn't.
    #[test]
    fn a_mark_is_found_again_wherever_it_is_and_no_other_is_taken_for_it() {
        let own = Netns::Own.open().unwrap().mark();
        assert!(own.inode > 0 && own.cookie > 0, "{own:?}");
        let elsewhere = NetnsMark { path: "/proc/0/ns/net".to_owned(), ..own.clone() };
        assert_eq!(elsewhere.find().unwrap().mark().cookie, own.cookie);
        // A new namespace that was given the inode of an old one.
        let later = NetnsMark { cookie: own.cookie + 1, ..own.clone() };
        assert!(later.find().is_none());
        assert!(NetnsMark { inode: 1, ..own }.find().is_none());
    }

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
