//! `holdfast run`: becomes the dataplane.

use crate::CommandError;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where switch files lie (SPEC 11).
const CONFIG_FOLDER: &str = "/etc/holdfast";
const DATAPLANE: &str = "holdfast-dataplane";

/// Replaces this process by the dataplane; returns only if that fails.
pub(crate) fn run(config: &str) -> Result<(), CommandError> {
    let program = program();
    let source = Command::new(&program).arg(file(config)).exec();
    Err(CommandError::NoDataplane { program: program.display().to_string(), source })
}

/// The dataplane beside this program, else the one in PATH.
pub(crate) fn program() -> PathBuf {
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name(DATAPLANE));
    beside.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from(DATAPLANE))
}

/// A bare name means a file in the config folder; anything else is a path.
pub(crate) fn file(config: &str) -> PathBuf {
    if config.contains(['/', '.']) {
        return PathBuf::from(config);
    }
    Path::new(CONFIG_FOLDER).join(format!("{config}.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_is_looked_up_and_a_path_is_a_path() {
        assert_eq!(file("lab"), Path::new("/etc/holdfast/lab.toml"));
        assert_eq!(file("lab.toml"), Path::new("lab.toml"));
        assert_eq!(file("./lab"), Path::new("./lab"));
    }
}
