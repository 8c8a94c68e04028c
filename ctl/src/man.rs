//! `holdfast man`: the manual pages, made of the same texts as `--help`.

use crate::cli::Cli;
use crate::{print, CommandError};
use clap::CommandFactory;
use std::path::Path;

/// Writes a page for each command into `folder`, or the main page to the standard output.
pub(crate) fn man(folder: Option<&Path>) -> Result<(), CommandError> {
    let Some(folder) = folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page)?;
        return Ok(print(&String::from_utf8_lossy(&page))?);
    };
    let failed = |source| CommandError::File { path: folder.display().to_string(), source };
    std::fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), folder).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Command;
    use std::collections::BTreeSet;

    /// The names of a command's pages, with those of all below it.
    fn pages(command: &Command, above: &str) -> Vec<String> {
        let name = match above {
            "" => command.get_name().to_owned(),
            above => format!("{above}-{}", command.get_name()),
        };
        let below = command.get_subcommands().flat_map(|below| pages(below, &name));
        let below: Vec<String> = below.collect();
        [vec![format!("{name}.1")], below].concat()
    }

    #[test]
    fn every_command_has_a_page_with_its_title_and_example() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("man1");
        man(Some(&out)).unwrap();
        let expected: BTreeSet<String> = pages(&Cli::command(), "").into_iter().collect();
        let entries = std::fs::read_dir(&out).unwrap();
        let written: BTreeSet<String> = entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        assert_eq!(written, expected);
        assert!(written.contains("holdfast-show-pg.1") && written.contains("holdfast-assert.1"));
        for name in &written {
            let page = std::fs::read_to_string(out.join(name)).unwrap();
            let title = format!(".TH {} 1", name.trim_end_matches(".1"));
            assert!(page.contains(&title), "{name}: {page}");
            assert!(page.contains(".SH NAME") && page.contains(".SH SYNOPSIS"), "{name}");
        }
        let page = std::fs::read_to_string(out.join("holdfast-show-pg.1")).unwrap();
        assert!(page.contains("Example: holdfast show pg h1"), "{page}");
    }
}
