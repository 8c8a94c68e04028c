//! Where a switch's control socket lies (SPEC 11).

use std::path::{Path, PathBuf};
use thiserror::Error;

/// Where sockets lie.
pub const RUN_FOLDER: &str = "/run/holdfast";

/// Why no socket is meant by "the only one".
#[derive(Debug, PartialEq, Eq, Error)]
pub enum NotTheOnly {
    /// There is none.
    #[error(
        "no switch runs: there is no socket in {}; start one by `holdfast run`, or name its \
         socket by --socket or HOLDFAST_SOCKET", folder.display()
    )]
    None {
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// There are several.
    #[error(
        "several switches have a socket in {}: {}; name one by --name", folder.display(),
        names.join(", ")
    )]
    Several {
        /// Where they are.
        folder: PathBuf,
        /// Their names, sorted.
        names: Vec<String>,
    },
}

/// The socket that is meant: the one at `socket`, else that of the switch `name`, else the only
/// one there is.
///
/// # Errors
/// [`NotTheOnly`], where neither is given and there isn't exactly one.
pub fn control_socket(socket: Option<&Path>, name: Option<&str>) -> Result<PathBuf, NotTheOnly> {
    let folder = Path::new(RUN_FOLDER);
    match (socket, name) {
        (Some(path), _) => Ok(path.to_path_buf()),
        (None, Some(name)) => Ok(folder.join(format!("{name}.sock"))),
        (None, None) => only_socket(folder),
    }
}

fn only_socket(folder: &Path) -> Result<PathBuf, NotTheOnly> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_socket = |path: &PathBuf| path.extension().is_some_and(|end| end == "sock");
    let mut sockets: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_socket).collect();
    sockets.sort();
    let folder = folder.to_path_buf();
    match (sockets.pop(), sockets.as_slice()) {
        (Some(path), []) => Ok(path),
        (None, _) => Err(NotTheOnly::None { folder }),
        (Some(last), others) => {
            let all = others.iter().chain([&last]).filter_map(|path| path.file_stem());
            let names = all.map(|name| name.to_string_lossy().into_owned()).collect();
            Err(NotTheOnly::Several { folder, names })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_socket_is_meant_none_is_unreachable_and_several_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let none = only_socket(folder.path()).unwrap_err();
        assert!(matches!(none, NotTheOnly::None { .. }), "{none}");
        assert!(none.to_string().contains("`holdfast run`"), "{none}");
        let touch = |name| std::fs::write(folder.path().join(name), "").unwrap();
        touch("lab.sock");
        touch("lab.toml");
        assert_eq!(only_socket(folder.path()).unwrap(), folder.path().join("lab.sock"));
        touch("core.sock");
        let several = only_socket(folder.path()).unwrap_err();
        assert!(matches!(several, NotTheOnly::Several { .. }), "{several}");
        assert!(several.to_string().contains(": core, lab; "), "{several}");
    }

    #[test]
    fn a_path_wins_over_a_name() {
        let path = Path::new("a.sock");
        assert_eq!(control_socket(Some(path), Some("lab")).unwrap(), path);
        let lab = control_socket(None, Some("lab")).unwrap();
        assert_eq!(lab, Path::new(RUN_FOLDER).join("lab.sock"));
    }
}
