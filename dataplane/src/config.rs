//! The two files of the switch, read and checked together (SPEC 10).

use holdfast_api::doc::{DocError, Source};
use holdfast_api::profile_doc::ProfileDoc;
use holdfast_api::switch_doc::{SwitchDoc, Workers};
use holdfast_plan::{resolve, PlanError, ProfilePlan, SwitchFacts};
use std::path::Path;
use thiserror::Error;

/// The MTU that a plan assumes for a netdev before it is opened: Ethernet's own.
const ASSUMED_MTU: u16 = 1500;

/// What is wrong with the files. Nothing was started.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The switch file or the profile can't be read, or says something wrong.
    #[error(transparent)]
    Document(Box<DocError>),
    /// The profile doesn't fit the switch.
    #[error("{file}: {error}")]
    Plan {
        /// The profile's file.
        file: String,
        /// What doesn't fit.
        error: Box<PlanError>,
    },
}

impl From<DocError> for ConfigError {
    fn from(error: DocError) -> Self {
        Self::Document(Box::new(error))
    }
}

/// Both files.
pub struct Config {
    /// What needs a restart or names this machine.
    pub switch: SwitchDoc,
    /// What travels between machines.
    pub profile: ProfileDoc,
    source: Source,
}

impl Config {
    /// Reads the switch file and the profile that it names, and plans the profile once, so that
    /// whatever is wrong shows before anything is touched.
    ///
    /// # Errors
    /// [`ConfigError`]: file, line, key and what to do.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let switch = SwitchDoc::load(&Source::read(path)?)?;
        let source = Source::read(&switch.profile_path(path))?;
        let profile = ProfileDoc::load(&source)?;
        let config = Self { switch, profile, source };
        config.plan(|_| None)?;
        Ok(config)
    }

    /// Plans the profile; `mtu_of` knows a port's MTU by its number where the file has none.
    ///
    /// # Errors
    /// [`ConfigError`], with the line of the profile where there is one.
    pub fn plan(&self, mtu_of: impl Fn(usize) -> Option<u16>) -> Result<ProfilePlan, ConfigError> {
        let number = |name: &str| self.switch.ports.iter().position(|port| port.name == name);
        let facts = SwitchFacts::new(&self.switch, |port| {
            number(&port.name).and_then(&mtu_of).unwrap_or(ASSUMED_MTU)
        });
        resolve(&self.profile, &facts).map_err(|error| match error {
            PlanError::Value(finding) => self.source.locate(finding).into(),
            error => {
                ConfigError::Plan { file: self.source.file().to_owned(), error: Box::new(error) }
            }
        })
    }

    /// Worker threads on a machine with so many cores (DESIGN 5).
    pub fn workers(&self, cores: usize) -> usize {
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
