//! Link settings as they were before the switch changed them, kept on disk until they are put
//! back: a switch that is killed can't do it, so the next start does (SPEC 9).
//!
//! The file ([`document`]) is written whole before each change ([`whole_file`]), and gone when
//! nothing is left to put back.

mod document;

use holdfast_api::whole_file::{self, FileError};
use holdfast_xsk::{put_back, Original, PutBack, UndoLog};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;

/// The file's name in the switch's state folder.
const FILE: &str = "links.json";
/// What one that can't be read is called from then on.
const BROKEN: &str = "links.json.broken";
/// The longest file that is read, bytes: 32 veth ports and their peers take 97 KiB.
const LIMIT: u64 = 16 << 20;
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// How long a process that was killed may hold the folder after its control socket is gone.
const LOCK_TRIES: u32 = 40;
const LOCK_PAUSE: Duration = Duration::from_millis(25);

/// Why what is kept can't be used.
#[derive(Debug, Error)]
enum LinksError {
    /// It can't be read, or its folder can't be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// It isn't what a switch wrote.
    #[error("{}: {why}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Another switch uses the folder.
    #[error("{} belongs to another running switch; give this one another `state`", .0.display())]
    InUse(PathBuf),
}

/// The file of one switch, which it has to itself as long as this lives.
struct KeptLinks {
    folder: PathBuf,
    boot_id: String,
    /// Whether it was said that the file can't be written.
    warned: bool,
    _lock: Option<Flock<File>>,
}

/// Puts back what a switch with this state folder left that ended without doing so, and says it.
/// Returns the log for what will be changed from now on. Whatever is wrong with the folder or the
/// file is a warning: a switch forwards without them.
///
/// To be called before a netdev is looked at, and only by the one instance that has the control
/// socket.
pub fn put_back_left(folder: &Path) -> UndoLog {
    let (kept, left) = match open(folder) {
        Ok(opened) => opened,
        Err(error) => {
            log::warn!("link settings are not kept for a start after a kill: {error}");
            return UndoLog::default();
        }
    };
    let PutBack { done, gone, failed } = put_back(left);
    if !done.is_empty() {
        let list = list(&done);
        log::warn!("link settings left by a switch that was killed are put back: {list}");
    }
    gone.iter().for_each(|original| log::debug!("{original}: its netdev is gone"));
    let path = kept.folder.join(FILE).display().to_string();
    for (original, error) in &failed {
        log::warn!(
            "{original} was left by a switch that was killed and can't be put back: {error}; do \
             it by hand and remove {path} while no switch runs, or the next start tries again"
        );
    }
    let failed = failed.into_iter().map(|(original, _)| original).collect();
    let mut kept = kept;
    UndoLog::new(failed, move |all| kept.keep(all))
}

/// The file, and what it says was left changed in this boot of the machine.
fn open(folder: &Path) -> Result<(KeptLinks, Vec<Original>), LinksError> {
    let boot_id = fs::read_to_string(BOOT_ID).map_err(FileError::at(Path::new(BOOT_ID)))?;
    let kept = KeptLinks::new(folder, boot_id.trim())?;
    let left = kept.read().unwrap_or_else(|error| {
        log::warn!("link settings left by a switch that was killed can't be put back: {error}");
        if let LinksError::Broken { path, .. } = error {
            match fs::rename(&path, folder.join(BROKEN)) {
                Ok(()) => log::warn!("{} is kept as {BROKEN}", path.display()),
                Err(error) => log::warn!("{} can't be set aside: {error}", path.display()),
            }
        }
        Vec::new()
    });
    Ok((kept, left))
}

/// Settings by netdev, in the order in which they were changed back.
fn list(done: &[Original]) -> String {
    let mut text = String::new();
    for of_one in done.chunk_by(|one, next| one.netdev == next.netdev) {
        for (number, original) in of_one.iter().enumerate() {
            // Writing to a String can't fail.
            let _ = match (number, text.is_empty()) {
                (0, true) => write!(text, "{original}"),
                (0, false) => write!(text, "; {original}"),
                _ => write!(text, ", {}", original.was),
            };
        }
    }
    text
}

impl KeptLinks {
    fn new(folder: &Path, boot_id: &str) -> Result<Self, LinksError> {
        fs::create_dir_all(folder).map_err(FileError::at(folder))?;
        let lock = lock(folder)?;
        let (folder, boot_id) = (folder.to_owned(), boot_id.to_owned());
        Ok(Self { folder, boot_id, warned: false, _lock: lock })
    }

    /// Keeps all that would have to be put back. That it can't is said once.
    fn keep(&mut self, all: &[Original]) {
        if let Err(error) = self.write(all) {
            if !std::mem::replace(&mut self.warned, true) {
                log::warn!("link settings are not kept for a start after a kill: {error}");
            }
        }
    }

    fn write(&self, all: &[Original]) -> Result<(), FileError> {
        if all.is_empty() {
            return whole_file::remove(&self.folder, FILE);
        }
        let text = document::write(all, &self.boot_id)
            .map_err(|error| FileError::at(&self.folder.join(FILE))(error.into()))?;
        whole_file::write(&self.folder, FILE, &text)
    }

    /// What was left changed in this boot; nothing if it was another one, or if there is no file.
    fn read(&self) -> Result<Vec<Original>, LinksError> {
        let path = self.folder.join(FILE);
        let Some(text) = whole_file::read(&path, LIMIT)? else { return Ok(Vec::new()) };
        document::read(&text, &self.boot_id).map_err(|why| LinksError::Broken { path, why })
    }
}

/// Has the folder for this process alone, however it ends. `None` on a file system that can't.
fn lock(folder: &Path) -> Result<Option<Flock<File>>, LinksError> {
    let mut file = File::open(folder).map_err(FileError::at(folder))?;
    for _ in 0..LOCK_TRIES {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(Some(lock)),
            Err((again, Errno::EWOULDBLOCK)) => file = again,
            Err((_, error)) => {
                log::debug!("{} can't be locked: {error}", folder.display());
                return Ok(None);
            }
        }
        std::thread::sleep(LOCK_PAUSE);
    }
    Err(LinksError::InUse(folder.to_owned()))
}

#[cfg(test)]
mod tests;
