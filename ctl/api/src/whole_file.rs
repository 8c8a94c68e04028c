//! Small files that a switch keeps over a restart: at any moment, after a kill or on a full disk,
//! there is the old one or the new one, whole.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a file isn't kept.
#[derive(Debug, Error)]
#[error("{}: {source}", path.display())]
pub struct FileError {
    /// The file or its folder.
    pub path: PathBuf,
    /// What the system says.
    pub source: io::Error,
}

impl FileError {
    /// For `map_err`: what went wrong at `path`.
    pub fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self { path, source }
    }
}

/// Writes `text` beside its place and renames it into `folder/name`; the folder is made if it isn't
/// there. It is on the disk when this returns.
///
/// # Errors
/// [`FileError`]; the file that was there before is still there, whole.
pub fn write(folder: &Path, name: &str, text: &str) -> Result<(), FileError> {
    let place = folder.join(name);
    // One that a kill left behind is written over.
    let unfinished = folder.join(unfinished(name));
    fs::create_dir_all(folder).map_err(FileError::at(folder))?;
    let written = File::create(&unfinished).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        // Before the rename: else the name could come to the disk before the bytes.
        file.sync_all()
    });
    if let Err(source) = written {
        // What there is of it takes room on a disk that is full already.
        let _ = fs::remove_file(&unfinished);
        return Err(FileError::at(&unfinished)(source));
    }
    fs::rename(&unfinished, &place).map_err(FileError::at(&place))?;
    sync(folder)
}

/// Reads a file of at most `most` bytes; `None` if there is none.
///
/// # Errors
/// The system's; and for what is no file, which might never end or never begin, and for a longer
/// one.
pub fn read(place: &Path, most: u64) -> Result<Option<Vec<u8>>, FileError> {
    let read = || {
        if !fs::metadata(place)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file"));
        }
        let mut bytes = Vec::new();
        File::open(place)?.take(most + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most {
            let why = format!("it is longer than {most} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        Ok(bytes)
    };
    match read() {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FileError::at(place)(error)),
    }
}

/// Removes `folder/name` and what a kill left of a new one, if they are there. They are gone from
/// the disk when this returns.
///
/// # Errors
/// [`FileError`].
pub fn remove(folder: &Path, name: &str) -> Result<(), FileError> {
    let mut removed = false;
    for place in [folder.join(unfinished(name)), folder.join(name)] {
        match fs::remove_file(&place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(FileError::at(&place)(source)),
            Ok(()) => removed = true,
        }
    }
    if removed {
        sync(folder)?;
    }
    Ok(())
}

/// What a file is called before it gets its name.
fn unfinished(name: &str) -> String {
    format!("{name}.new")
}

fn sync(folder: &Path) -> Result<(), FileError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(FileError::at(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_over_and_removed_and_nothing_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("not/yet/there");
        remove(&inner, "a").unwrap();
        for text in ["long", "", "äöü\n"] {
            write(&inner, "a", text).unwrap();
            assert_eq!(fs::read_to_string(inner.join("a")).unwrap(), text);
            assert_eq!(fs::read_dir(&inner).unwrap().count(), 1);
        }
        fs::write(inner.join(unfinished("a")), "half").unwrap();
        remove(&inner, "a").unwrap();
        remove(&inner, "a").unwrap();
        assert_eq!(fs::read_dir(&inner).unwrap().count(), 0);
        write(&inner, "file", "").unwrap();
        let error = write(&inner.join("file"), "a", "").unwrap_err();
        assert!(error.to_string().starts_with(&inner.join("file").display().to_string()));
    }

    /// A pipe would never begin, a device never end: neither keeps a switch from starting.
    #[test]
    fn what_is_no_file_or_too_long_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        assert_eq!(read(&place("none"), 4).unwrap(), None);
        fs::write(place("fits"), "1234").unwrap();
        assert_eq!(read(&place("fits"), 4).unwrap().unwrap(), b"1234");
        fs::write(place("long"), "12345").unwrap();
        std::os::unix::fs::symlink("/dev/zero", place("device")).unwrap();
        std::os::unix::net::UnixListener::bind(place("socket")).unwrap();
        for (name, why) in [("long", "longer"), ("device", "no file"), ("socket", "no file")] {
            let error = read(&place(name), 4).unwrap_err().to_string();
            assert!(error.contains(why), "{name}: {error}");
        }
    }
}
