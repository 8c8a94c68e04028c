//! What a lab leaves behind whose process was killed before it could clean up.

use crate::netns::{self, Netns};
use std::fs;
use std::path::Path;

/// Removes namespaces and folders of labs named `prefix` whose process is gone; returns their
/// names. Those of a lab that runs are left alone.
pub fn remove_leftovers(prefix: &str) -> Vec<String> {
    let mut removed = Vec::new();
    for name in names_in(Path::new(netns::FOLDER)) {
        if is_orphan(&name, prefix) && Netns::remove(&name).is_ok() {
            removed.push(format!("netns {name}"));
        }
    }
    let temporary = std::env::temp_dir();
    for name in names_in(&temporary) {
        let folder = temporary.join(&name);
        if is_orphan(&name, prefix) && fs::remove_dir_all(&folder).is_ok() {
            removed.push(folder.display().to_string());
        }
    }
    removed
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Whether `name` is `PREFIX-PID-…` and there is no such process any more.
fn is_orphan(name: &str, prefix: &str) -> bool {
    let rest = name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('-'));
    let pid = rest.and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
    pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_a_process_that_is_gone_are_orphans() {
        // Beyond the largest process id that Linux gives (2^22).
        assert!(is_orphan("lab-4294967295-h1", "lab"));
        assert!(!is_orphan(&format!("lab-{}-h1", std::process::id()), "lab"));
        for other in ["lab-h1", "lab", "lab-x-1", "lab2-4294967295-h1", "4294967295"] {
            assert!(!is_orphan(other, "lab"), "{other}");
        }
    }
}
