//! Where the binaries under test are.

use crate::LabError;
use std::env;
use std::path::PathBuf;

/// The switch.
pub const DATAPLANE: &str = "holdfast-dataplane";
/// The command line.
pub const CLI: &str = "holdfast";
/// The control daemon.
pub const DAEMON: &str = "holdfastd";
/// The host.
pub const ENDPOINT: &str = "holdfast-endpoint";

/// The path of a binary: in `HOLDFAST_BIN_DIR`, else beside this executable or, for a test, in
/// the folder above.
///
/// # Errors
/// [`LabError::NoBinary`].
pub fn find(name: &str) -> Result<PathBuf, LabError> {
    let own = env::current_exe().unwrap_or_default();
    let folders = match env::var_os("HOLDFAST_BIN_DIR") {
        Some(folder) => vec![PathBuf::from(folder)],
        None => own.ancestors().skip(1).take(2).map(PathBuf::from).collect(),
    };
    let paths: Vec<_> = folders.iter().map(|folder| folder.join(name)).collect();
    match paths.iter().find(|path| path.is_file()) {
        Some(path) => Ok(path.clone()),
        None => Err(LabError::NoBinary { path: paths.last().cloned().unwrap_or_default() }),
    }
}
