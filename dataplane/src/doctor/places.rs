//! Where the switch leaves its socket and the profile it boots with next time.

use crate::config::Config;
use holdfast_api::doctor::{Condition, Health};
use nix::unistd::{access, AccessFlags};
use std::path::{Path, PathBuf};

/// Where sockets lie without a switch file (SPEC 11).
const RUN: &str = "/run/holdfast";
/// Where profiles are kept without one.
const STATE: &str = "/var/lib/holdfast";

/// The group, and both folders: those of the switch file where there is one.
pub(super) fn places(config: Option<&Config>, group: bool) -> Vec<Condition> {
    let run =
        config.map_or_else(|| PathBuf::from(RUN), |config| folder(config.switch.socket_path()));
    let state = config.map_or_else(|| PathBuf::from(STATE), |config| config.switch.state_path());
    let why_run = "the control socket is made there";
    let why_state = "the profile in force is kept there for the next start";
    vec![
        members(group),
        writable("run-folder", &run, Health::Missing, why_run),
        writable("state-folder", &state, Health::Degraded, why_state),
    ]
}

fn folder(socket: PathBuf) -> PathBuf {
    match socket.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

fn members(group: bool) -> Condition {
    let (name, why) = (crate::control::GROUP, "its members may use the control socket");
    if group {
        return Condition::new("group", Health::Ok, format!("group {name} exists"), why);
    }
    let what = format!("there is no group {name}: only the owner may use the socket");
    Condition::new("group", Health::Degraded, what, why).fix(format!("groupadd --system {name}"))
}

/// Whether files can be made in a folder, or the folder in the nearest one that exists.
fn writable(id: &str, folder: &Path, without: Health, why: &str) -> Condition {
    let shown = folder.display();
    let nearest = folder.ancestors().find(|place| place.exists());
    let nearest = nearest.unwrap_or(Path::new("."));
    let allowed = access(nearest, AccessFlags::W_OK | AccessFlags::X_OK);
    match allowed {
        Ok(()) if !nearest.is_dir() => {
            let what = format!("{} is no folder", nearest.display());
            Condition::new(id, without, what, why).fix("move it away")
        }
        Ok(()) if nearest == folder => {
            Condition::new(id, Health::Ok, format!("{shown} can be written"), why)
        }
        Ok(()) => Condition::new(id, Health::Ok, format!("{shown} can be made"), why),
        Err(error) => {
            let what = format!("{} can't be written: {}", nearest.display(), error.desc());
            let fix = format!("make {shown} and let the switch's user write there");
            Condition::new(id, without, what, why).fix(fix)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_there_or_can_be_made_will_do() {
        let folder = tempfile::tempdir().unwrap();
        let look = |path: &Path| writable("run-folder", path, Health::Missing, "why");
        assert!(look(folder.path()).what.ends_with("can be written"));
        let deep = folder.path().join("a/b/c");
        assert!(look(&deep).what.ends_with("can be made"));
        assert!(!deep.exists() && !folder.path().join("a").exists(), "only looked at");
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        for path in [file.clone(), file.join("below")] {
            let found = look(&path);
            assert_eq!(found.state, Health::Missing, "{found:?}");
            assert!(found.fix.is_some());
        }
    }
}
