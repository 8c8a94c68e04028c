//! The two files of the switch, read and checked together (SPEC 10).

use holdfast_api::doc::{DocError, Finding, Source};
use holdfast_api::last_good::{self, sha256, LastGood};
use holdfast_api::profile_doc::ProfileDoc;
use holdfast_api::switch_doc::{SwitchDoc, Workers};
use holdfast_core::profile::ProfileSpec;
use holdfast_core::units::Cells;
use holdfast_plan::{resolve, PortFacts, ProfilePlan, SwitchFacts};
use holdfast_xsk::{chunks_needed, Layout, PortNeed, RingSizes};
use std::path::Path;

/// The MTU that a plan assumes for a netdev before it is looked at: Ethernet's own.
const ASSUMED_MTU: u16 = 1500;

/// Lines of the last good profile's file before the profile itself.
const KEPT_HEAD: &str = "\n\n\n";

/// Both files.
pub struct Config {
    /// What needs a restart or names this machine.
    pub switch: SwitchDoc,
    /// What travels between machines.
    pub profile: ProfileDoc,
    /// Why another profile was taken than the file that the switch file names; one sentence each.
    pub notes: Vec<String>,
    source: Source,
    /// The switch file.
    switch_file: Source,
    /// SHA-256 of the profile file that the switch file names; empty where it can't be read.
    boot_file: String,
}

impl Config {
    /// Reads the switch file and the profile that it names, and plans the profile once, so that
    /// whatever is wrong shows before anything is touched.
    ///
    /// # Errors
    /// [`DocError`]: file, line, key and what to do.
    pub fn load(path: &Path) -> Result<Self, DocError> {
        let switch_file = Source::read(path)?;
        let switch = SwitchDoc::load(&switch_file)?;
        let source = Source::read(&switch.profile_path(path))?;
        let boot_file = sha256(source.text());
        Self::with((switch, switch_file), source, boot_file)
    }

    /// As [`Config::load`], for a switch that must come up: with the profile that was in force last
    /// where the file is missing or wrong, or where it is still the one that was there when a newer
    /// profile was applied (SPEC 11).
    ///
    /// # Errors
    /// [`DocError`] of the switch file; of the profile file, if no last good profile fits either.
    pub fn load_for_boot(path: &Path) -> Result<Self, DocError> {
        let switch_file = Source::read(path)?;
        let switch = SwitchDoc::load(&switch_file)?;
        let file = Source::read(&switch.profile_path(path));
        let boot_file = file.as_ref().map(|file| sha256(file.text())).unwrap_or_default();
        let state = switch.state_path();
        let mut notes = Vec::new();
        let kept = LastGood::read(&state).unwrap_or_else(|error| {
            notes.push(format!("the last good profile is not used: {error}"));
            None
        });
        let kept = kept.map(|kept| {
            let name = state.join(last_good::FILE).display().to_string();
            let newer = kept.boot_file == boot_file;
            let loaded = Source::new(name, format!("{KEPT_HEAD}{}", kept.text));
            let both = (switch.clone(), switch_file.clone());
            (newer, Self::with(both, loaded, boot_file.clone()))
        });
        let named = |error: &dyn std::fmt::Display| {
            format!("the last good profile is in force, because {error}")
        };
        let load_file = |file: Result<Source, DocError>| {
            Self::with((switch, switch_file), file?, boot_file.clone())
        };
        let mut config = match kept {
            Some((true, Ok(kept))) => {
                if file.as_ref().is_ok_and(|file| file.text() != kept.profile_text()) {
                    let file = file.as_ref().map_or("", Source::file);
                    notes.push(named(&format!("it was applied after {file} was written")));
                }
                kept
            }
            Some((_, Ok(kept))) => load_file(file).unwrap_or_else(|error| {
                notes.push(named(&error));
                kept
            }),
            Some((_, Err(error))) => {
                notes.push(format!("the last good profile is not used: {error}"));
                load_file(file)?
            }
            None => load_file(file)?,
        };
        config.notes = notes;
        Ok(config)
    }

    fn with(
        (switch, switch_file): (SwitchDoc, Source),
        source: Source,
        boot_file: String,
    ) -> Result<Self, DocError> {
        let profile = ProfileDoc::load(&source)?;
        let notes = Vec::new();
        let config = Self { switch, profile, notes, source, switch_file, boot_file };
        let plan = config.plan(|_| None)?;
        config.layout(plan.spec(), |_| None)?;
        Ok(config)
    }

    /// The profile's document, as it is kept.
    fn profile_text(&self) -> &str {
        self.source.text().strip_prefix(KEPT_HEAD).unwrap_or(self.source.text())
    }

    /// What to keep of a profile that came up.
    pub fn last_good(&self) -> LastGood {
        LastGood { text: self.profile_text().to_owned(), boot_file: self.boot_file.clone() }
    }

    /// What a plan has to know of the switch; `mtu_of` knows a port's MTU by its number where the
    /// file has none.
    pub fn facts(&self, mtu_of: impl Fn(usize) -> Option<u16>) -> SwitchFacts {
        let number = |name: &str| self.switch.ports.iter().position(|port| port.name == name);
        let mut facts = SwitchFacts::new(&self.switch, |port| {
            number(&port.name).and_then(&mtu_of).unwrap_or(ASSUMED_MTU)
        });
        let vacant = (0..self.switch.spare_ports).map(|_| PortFacts::vacant());
        facts.ports.extend(vacant);
        facts
    }

    /// Plans the profile, and holds it against what the core can run; `mtu_of` knows a port's MTU
    /// by its number where the file has none.
    ///
    /// # Errors
    /// [`DocError`] with the line of the profile.
    pub fn plan(&self, mtu_of: impl Fn(usize) -> Option<u16>) -> Result<ProfilePlan, DocError> {
        let plan = resolve(&self.profile, &self.facts(mtu_of));
        let fits = plan.and_then(|plan| plan.profile(1).map(|_| plan));
        fits.map_err(|error| self.source.locate(error.finding(&self.switch.port_names())))
    }

    /// How the frames' memory is dealt out to the workers: each can have all frames' chunks,
    /// because a frame goes home to its worker. `queues_of` knows a port's RX queues by its number
    /// where the file has none.
    ///
    /// # Errors
    /// [`DocError`] with the line of the profile, where that is more than descriptors can name.
    pub fn layout(
        &self,
        spec: &ProfileSpec,
        queues_of: impl Fn(usize) -> Option<u32>,
    ) -> Result<Layout, DocError> {
        let rings = self.rings();
        let ports = self.switch.ports.iter().enumerate();
        let mut needs: Vec<PortNeed> = ports
            .map(|(number, port)| {
                let queues = port.queues.or_else(|| queues_of(number)).unwrap_or(1).max(1);
                PortNeed { queues, rings }
            })
            .collect();
        // A spare port may have as many queues as the port that has most.
        let queues = needs.iter().map(|need| need.queues).max().unwrap_or(1);
        needs.extend((0..self.switch.spare_ports).map(|_| PortNeed { queues, rings }));
        let workers = self.worker_count();
        let each = chunks_needed(spec.total, Cells(spec.flood_limit), &needs);
        let layout = Layout::new(vec![u32::try_from(each).unwrap_or(u32::MAX); workers]);
        layout.map_err(|error| {
            let parts = chunks_needed(Cells::ZERO, Cells::ZERO, &needs);
            let message = format!(
                "each of {workers} workers needs {each} chunks of memory: {} cells, {} flooded \
                 copies, {parts} for rings; {error}",
                spec.total.0, spec.flood_limit
            );
            let fix = "make the buffer smaller, or workers, rings.rx or queues in the switch file";
            self.source.locate(Finding::new("buffer.total", message, fix))
        })
    }

    /// Descriptor rings of each socket.
    pub fn rings(&self) -> RingSizes {
        let doc = &self.switch.rings;
        RingSizes { rx: doc.rx, fill: doc.rx, tx: doc.tx, completion: doc.tx }
    }

    /// A finding about the switch file, with its line there.
    pub fn locate(&self, finding: Finding) -> DocError {
        self.switch_file.locate(finding)
    }

    /// Worker threads on this machine.
    pub fn worker_count(&self) -> usize {
        self.workers(std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// Worker threads on a machine with so many cores (DESIGN 5).
    fn workers(&self, cores: usize) -> usize {
        match self.switch.workers {
            Workers::Count(count) => count as usize,
            Workers::Auto => cores.saturating_sub(1).clamp(1, self.switch.ports.len().clamp(1, 16)),
        }
    }

    /// One line for `--check`.
    pub fn summary(&self) -> String {
        let ports = self.switch.port_names().join(", ");
        format!(
            "{}: profile {} fits {} ports ({ports})",
            self.switch.name,
            self.profile.name,
            self.switch.ports.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    /// A switch file, its profile named `name`, and a state folder.
    fn files(name: &str) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let switch = format!(
            "name = \"lab\"\nstate = {state:?}\nprofile = \"profile.toml\"\n\
             [[port]]\nname = \"p\"\nifname = \"eth9\"\nspeed = \"1G\"\n"
        );
        fs::write(folder.path().join("switch.toml"), switch).unwrap();
        fs::write(folder.path().join("profile.toml"), profile(name)).unwrap();
        folder
    }

    fn profile(name: &str) -> String {
        format!(
            "name = \"{name}\"\n[[pool]]\nname = \"lossless\"\nsize = 6000\n[[pool]]\n\
             name = \"lossy\"\nsize = 2000\n[pg.3]\nheadroom = 2000\nalpha = 0\nxoff = 2000\n\
             xon = 500\n"
        )
    }

    fn boot(folder: &TempDir) -> Result<Config, DocError> {
        Config::load_for_boot(&folder.path().join("switch.toml"))
    }

    /// As a switch does: it boots, and keeps what it booted with.
    fn boot_and_keep(folder: &TempDir) -> Config {
        let config = boot(folder).unwrap();
        config.last_good().write(&folder.path().join("state")).unwrap();
        config
    }

    /// As `apply` does while the switch runs.
    fn applied(folder: &TempDir, config: &Config, name: &str) {
        let boot_file = config.last_good().boot_file;
        let kept = LastGood { text: profile(name), boot_file };
        kept.write(&folder.path().join("state")).unwrap();
    }

    fn check(folder: &TempDir) -> String {
        Config::load(&folder.path().join("switch.toml")).map_or_else(
            |error| error.to_string(),
            |config| panic!("{} was accepted", config.profile.name),
        )
    }

    /// What a boot would refuse is refused before, with file, line and key (SPEC 10).
    #[test]
    fn a_check_refuses_what_a_boot_would() {
        let folder = files("file");
        let path = folder.path().join("profile.toml");
        let file = path.display();
        let refused = |text: String, wanted: &str| {
            fs::write(&path, text).unwrap();
            let said = check(&folder);
            assert!(said.starts_with(&format!("{file}:{wanted}")), "{said}");
        };
        let with = |more: &str| format!("{}{more}", profile("p"));
        for total in ["0", "100", "4294967295"] {
            refused(with(&format!("[buffer]\ntotal = {total}\n")), "14: buffer.total: ");
        }
        refused(with("[buffer]\nspare = 4294967295\n"), "13: buffer.total: ");
        let huge = with("[buffer]\ntotal = 100000000\n").replace("6000", "2147483648");
        refused(huge, "14: buffer.total: ");
        let rates = "[port.p.queue.3]\nmin_rate = \"2G\"\nmax_rate = \"1G\"\n";
        refused(with(rates), "14: port.p.queue.3.min_rate: 2000000000 bit/s is above max_rate ");
        // The most cells that there can be, and rings on top.
        refused(with("[buffer]\ntotal = 4194304\n"), "14: buffer.total: ");
        fs::write(&path, profile("p")).unwrap();
        let switch = folder.path().join("switch.toml");
        let text = fs::read_to_string(&switch).unwrap();
        fs::write(&switch, text.replace("speed", "queues = 64\nspeed") + "[rings]\nrx = 32768\n")
            .unwrap();
        // 64 rings of 32768 are 2^21 chunks, which two workers can't have each.
        let both = "workers = 2\n";
        fs::write(&switch, format!("{both}{}", fs::read_to_string(&switch).unwrap())).unwrap();
        assert!(check(&folder).contains(": buffer.total: each of 2 workers needs "));
    }

    #[test]
    fn what_was_applied_last_is_in_force_after_a_restart() {
        let folder = files("file");
        let first = boot_and_keep(&folder);
        assert_eq!((first.profile.name.as_str(), first.notes.len()), ("file", 0));
        applied(&folder, &first, "applied");
        for _ in 0..2 {
            let again = boot_and_keep(&folder);
            assert_eq!(again.profile.name, "applied");
            assert!(again.notes[0].contains("applied after"), "{:?}", again.notes);
        }
    }

    #[test]
    fn a_file_written_since_is_newer_than_what_was_applied() {
        let folder = files("file");
        let first = boot_and_keep(&folder);
        applied(&folder, &first, "applied");
        fs::write(folder.path().join("profile.toml"), profile("edited")).unwrap();
        let next = boot_and_keep(&folder);
        assert_eq!((next.profile.name.as_str(), next.notes.len()), ("edited", 0));
    }

    #[test]
    fn without_a_good_file_the_last_good_one_boots() {
        let folder = files("file");
        assert!(!boot_and_keep(&folder).profile.name.is_empty());
        let path = folder.path().join("profile.toml");
        fs::write(&path, profile("file").replace("xon = 500", "xon = 0")).unwrap();
        let wrong = boot_and_keep(&folder);
        assert_eq!(wrong.profile.name, "file");
        assert!(wrong.notes[0].contains("profile.toml:12: "), "{:?}", wrong.notes);
        fs::remove_file(&path).unwrap();
        assert_eq!(boot_and_keep(&folder).profile.name, "file");
        fs::write(&path, profile("mended")).unwrap();
        assert_eq!(boot_and_keep(&folder).profile.name, "mended");
    }

    #[test]
    fn a_damaged_last_good_file_is_said_and_not_used() {
        let folder = files("file");
        let first = boot_and_keep(&folder);
        applied(&folder, &first, "applied");
        let path = folder.path().join("state").join(last_good::FILE);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("xoff = 2000", "xoff = 2001")).unwrap();
        let config = boot(&folder).unwrap();
        assert_eq!(config.profile.name, "file");
        assert!(config.notes[0].contains("checksum"), "{:?}", config.notes);
        // With neither of them the file's error counts.
        fs::write(folder.path().join("profile.toml"), "name = 3\n").unwrap();
        assert!(boot(&folder).is_err_and(|error| error.to_string().contains("profile.toml:1")));
    }
}
