//! The last profile that a switch put into force, kept on disk (SPEC 11).
//!
//! The file is the profile's own TOML under a head of comments: what it is, the SHA-256 of all that
//! follows the head, and that of the file which the switch file names, as it was when the profile
//! was applied. [`whole_file`] writes it: at any moment there is the old file or the new one.

use crate::doc::MAX_FILE;
use crate::whole_file::{self, FileError};
use sha2::{Digest, Sha256};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The file's name in the switch's state folder.
pub const FILE: &str = "last-good.toml";

const TITLE: &str = "# The last profile that the switch put into force. Written by the switch: \
                     change it by `holdfast apply`.";
const CHECKSUM: &str = "# sha256 ";
/// A profile and what stands above it.
const LONGEST: u64 = MAX_FILE + 4096;
const BOOT_FILE: &str = "# profile file sha256 ";

/// The last good profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastGood {
    /// The document, TOML.
    pub text: String,
    /// SHA-256 of the profile file that switch.toml named when this one was put into force. Where
    /// that file is still the same, this profile is the newer one.
    pub boot_file: String,
}

/// Why there is no last good profile although there is a file.
#[derive(Debug, Error)]
pub enum LastGoodError {
    /// It can't be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or its folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It isn't what the switch wrote.
    #[error(
        "{}: the checksum doesn't hold: the file was changed or cut off; remove it, or apply a \
         profile", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
    },
}

/// SHA-256 of a text, in hex.
pub fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl LastGood {
    /// Keeps it in `folder`, which is made if it isn't there.
    ///
    /// # Errors
    /// [`LastGoodError::Io`]; the file that was there before is still there, whole.
    pub fn write(&self, folder: &Path) -> Result<(), LastGoodError> {
        whole_file::write(folder, FILE, &self.to_file())
            .map_err(|FileError { path, source }| LastGoodError::Io { path, source })
    }

    /// What is kept in `folder`; `None` if nothing is.
    ///
    /// # Errors
    /// [`LastGoodError`], if it can't be read or isn't whole.
    pub fn read(folder: &Path) -> Result<Option<Self>, LastGoodError> {
        let path = folder.join(FILE);
        let bytes = whole_file::read(&path, LONGEST)
            .map_err(|FileError { path, source }| LastGoodError::Io { path, source })?;
        let Some(bytes) = bytes else { return Ok(None) };
        let text = String::from_utf8(bytes).ok();
        let found = text.as_deref().and_then(Self::from_file);
        found.map(Some).ok_or(LastGoodError::Damaged { path })
    }

    /// The file's text.
    pub fn to_file(&self) -> String {
        let rest = format!("{BOOT_FILE}{}\n{}", self.boot_file, self.text);
        format!("{TITLE}\n{CHECKSUM}{}\n{rest}", sha256(&rest))
    }

    /// The inverse of [`Self::to_file`]; `None` if the text isn't what that wrote, to the byte.
    pub fn from_file(file: &str) -> Option<Self> {
        let (checksum, rest) = file
            .strip_prefix(TITLE)?
            .strip_prefix('\n')?
            .strip_prefix(CHECKSUM)?
            .split_once('\n')?;
        if checksum != sha256(rest) {
            return None;
        }
        let (boot_file, text) = rest.strip_prefix(BOOT_FILE)?.split_once('\n')?;
        Some(Self { text: text.to_owned(), boot_file: boot_file.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;

    fn good(text: &str) -> LastGood {
        LastGood { text: text.to_owned(), boot_file: sha256("boot") }
    }

    #[test]
    fn what_was_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("not/yet/there");
        assert_eq!(LastGood::read(&inner).unwrap(), None);
        for text in ["name = \"a\"\n", "", "no end of line", "äöü\r\n\n"] {
            good(text).write(&inner).unwrap();
            assert_eq!(LastGood::read(&inner).unwrap(), Some(good(text)));
            assert_eq!(fs::read_dir(&inner).unwrap().count(), 1, "something was left behind");
        }
    }

    #[test]
    fn sha256_is_the_standards() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sha256(""), empty);
    }

    proptest! {
        /// Whatever byte is changed and wherever the file is cut: it is found out.
        #[test]
        fn damage_is_found_out(at in 0usize..400, byte in any::<u8>(), cut in any::<bool>()) {
            let folder = tempfile::tempdir().unwrap();
            good("name = \"a\"\n[buffer]\ntotal = 100\n").write(folder.path()).unwrap();
            let path = folder.path().join(FILE);
            let whole = fs::read(&path).unwrap();
            let at = at % whole.len();
            let mut bytes = whole.clone();
            if cut {
                bytes.truncate(at);
            } else {
                bytes[at] = byte;
            }
            prop_assume!(bytes != whole);
            fs::write(&path, bytes).unwrap();
            let read = LastGood::read(folder.path());
            prop_assert!(matches!(read, Err(LastGoodError::Damaged { .. })), "{read:?}");
        }
    }
}
