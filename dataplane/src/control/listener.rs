//! The control socket's file: who may use it, and whose it was before (SPEC 11).

use mio::net::{UnixListener, UnixStream};
use nix::sys::socket::{
    bind, listen, socket, AddressFamily, Backlog, SockFlag, SockType, UnixAddr,
};
use nix::unistd::Group;
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Members of this group may use the socket.
pub(crate) const GROUP: &str = "holdfast";
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 64;

/// Why the control socket can't be made.
#[derive(Debug, Error)]
pub(crate) enum ListenerError {
    /// Another instance answers there.
    #[error(
        "the control socket {path} is in use by a running switch; stop it, or give this one \
         another name or `socket`"
    )]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// Something else stands there.
    #[error("{path} exists and is no socket; remove it or give this switch another `socket`")]
    NoSocket {
        /// The file.
        path: PathBuf,
    },
    /// The system refused.
    #[error("the control socket {path} can't be made: {step}: {source}")]
    System {
        /// The socket.
        path: PathBuf,
        /// What was tried.
        step: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// The listening socket; its file goes away with it.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(super) socket: UnixListener,
    path: PathBuf,
    /// Device and inode of the file, to know it again.
    file: (u64, u64),
}

impl Listener {
    /// Makes the socket: mode 0660 for group `holdfast`, or 0600 where there is no such group. A
    /// file that a dead instance left behind is replaced. Nobody can connect before the mode is
    /// right: it listens last.
    ///
    /// # Errors
    /// [`ListenerError`]; a file that was there and isn't a dead socket is left alone.
    pub(crate) fn bind(path: PathBuf) -> Result<Self, ListenerError> {
        let failed = |step| {
            let path = path.clone();
            move |source: io::Error| ListenerError::System { path, step, source }
        };
        clear_stale(&path)?;
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(failed("make its folder"))?;
        }
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)
            .map_err(|error| failed("socket")(error.into()))?;
        let address = UnixAddr::new(&path).map_err(|error| failed("its path")(error.into()))?;
        bind(socket.as_raw_fd(), &address).map_err(|error| failed("bind")(error.into()))?;
        let file = fs::symlink_metadata(&path).map_err(failed("stat"))?;
        // From here on a failure takes the file away again.
        let made = Self {
            socket: UnixListener::from_std(socket.into()),
            path: path.clone(),
            file: (file.dev(), file.ino()),
        };
        grant(&path).map_err(failed("set its mode"))?;
        let backlog = Backlog::new(BACKLOG).unwrap_or(Backlog::MAXALLOWABLE);
        listen(&made.socket, backlog).map_err(|error| failed("listen")(error.into()))?;
        Ok(made)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path)
            .is_ok_and(|file| (file.dev(), file.ino()) == self.file);
        if ours {
            if let Err(error) = fs::remove_file(&self.path) {
                log::warn!("the control socket {} stays behind: {error}", self.path.display());
            }
        }
    }
}

/// Removes the socket of an instance that is gone; refuses one that lives.
fn clear_stale(path: &Path) -> Result<(), ListenerError> {
    let failed = |step| {
        let path = path.to_path_buf();
        move |source| ListenerError::System { path, step, source }
    };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed("stat")(error)),
        Ok(file) if !file.file_type().is_socket() => {
            return Err(ListenerError::NoSocket { path: path.to_path_buf() });
        }
        Ok(_) => {}
    }
    // Doesn't block: a live instance whose backlog is full says so.
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            log::info!("replacing the control socket {} of a dead instance", path.display());
            fs::remove_file(path).map_err(failed("remove the old one"))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Ok(_) => Err(ListenerError::InUse { path: path.to_path_buf() }),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Err(ListenerError::InUse { path: path.to_path_buf() })
        }
        Err(error) => Err(failed("ask who owns it")(error)),
    }
}

/// Opens the socket to the group, or to its owner alone where there is no group to open it to.
fn grant(path: &Path) -> io::Result<()> {
    let shown = path.display();
    let mode = match Group::from_name(GROUP) {
        Ok(Some(group)) => match std::os::unix::fs::chown(path, None, Some(group.gid.as_raw())) {
            Ok(()) => 0o660,
            Err(error) => {
                log::warn!("{shown} can't be given to group {GROUP} ({error}): mode 0600");
                0o600
            }
        },
        Ok(None) => {
            log::warn!("there is no group {GROUP}: only the owner may use {shown} (mode 0600)");
            0o600
        }
        Err(error) => {
            log::warn!("group {GROUP} can't be looked up ({error}): {shown} has mode 0600");
            0o600
        }
    };
    fs::set_permissions(path, Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_socket_is_replaced_and_a_live_one_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run/lab.sock");
        let first = Listener::bind(path.clone()).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        let group = Group::from_name(GROUP).unwrap();
        assert_eq!(mode, if group.is_some() { 0o660 } else { 0o600 });
        assert!(matches!(Listener::bind(path.clone()), Err(ListenerError::InUse { .. })));
        drop(first);
        assert!(!path.exists(), "its file goes away with it");
        // A killed instance leaves its file behind.
        drop(std::os::unix::net::UnixListener::bind(path.clone()).unwrap());
        assert!(path.exists());
        let second = Listener::bind(path.clone()).unwrap();
        // Somebody else's file at the same place is not removed.
        fs::remove_file(&path).unwrap();
        fs::write(&path, "mine").unwrap();
        drop(second);
        assert!(path.exists());
        assert!(matches!(Listener::bind(path.clone()), Err(ListenerError::NoSocket { .. })));
        assert_eq!(fs::read(&path).unwrap(), b"mine");
    }
}
