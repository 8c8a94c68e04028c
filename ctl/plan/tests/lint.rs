//! Every check of the linter has a profile that it finds and one that just passes, the shipped
//! profiles have no error, and nothing that is no profile makes it panic.
// A test fails by panicking, in its own functions too.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use holdfast_api::doc::Source;
use holdfast_api::profile_doc::ProfileDoc;
use holdfast_core::units::BitRate;
use holdfast_plan::lint::{self, Id, Options, Report, Severity};
use holdfast_plan::{resolve, PortFacts, SwitchFacts};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lint")
}

fn facts(ports: usize, gbit: u64, mtu: u16) -> SwitchFacts {
    let port = |n| PortFacts {
        name: format!("h{n}"),
        speed: BitRate::gigabits(gbit),
        mtu,
        trust: None,
        link_pause: false,
    };
    SwitchFacts { ports: (1..=ports).map(port).collect(), flood_limit: 64, rx_ring: 2048 }
}

/// A profile of `tests/lint`: the base with what the file changes.
struct Case {
    stem: String,
    text: String,
    /// What the file's comments say of the switch: `# ports: 16`.
    told: BTreeMap<String, String>,
}

fn merge(into: &mut toml::Table, changes: toml::Table) {
    for (key, value) in changes {
        match (into.get_mut(&key), value) {
            (Some(toml::Value::Table(old)), toml::Value::Table(new)) => merge(old, new),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}

fn base() -> String {
    std::fs::read_to_string(folder().join("base.toml")).unwrap()
}

impl Case {
    /// The file of this name, `None` if there is none.
    fn read(name: &str) -> Option<Self> {
        let text = std::fs::read_to_string(folder().join(format!("{name}.toml"))).ok()?;
        let told = text
            .lines()
            .filter_map(|line| line.strip_prefix("# ")?.split_once(": "))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        let mut document: toml::Table = base().parse().unwrap();
        merge(&mut document, text.parse().unwrap_or_else(|error| panic!("{name}: {error}")));
        let text = toml::to_string(&document).unwrap();
        Some(Self { stem: name.to_owned(), text, told })
    }

    fn facts(&self) -> SwitchFacts {
        let ports = self.told.get("ports").map_or(2, |ports| ports.parse().unwrap());
        let mut facts = facts(ports, 10, 1500);
        for port in &mut facts.ports {
            port.link_pause = self.told.get("link pause") == Some(&port.name);
        }
        facts
    }

    fn lint(&self) -> Report {
        let source = Source::new(&self.stem, &self.text);
        let doc = match ProfileDoc::load(&source) {
            Ok(doc) => doc,
            Err(error) => return lint::unreadable(error),
        };
        let facts = self.facts();
        let at_once = self.told.get("queues at once").map_or(1, |k| k.parse().unwrap());
        let options = Options { queues_at_once: at_once };
        let mut report = lint::profile(&doc, &facts, options);
        if let (Ok(plan), true) = (resolve(&doc, &facts), self.stem.starts_with("P04")) {
            let peer = ProfileDoc::load(&Source::new("base", base())).unwrap();
            let peer = resolve(&peer, &facts).unwrap();
            report = report.and(lint::link(&plan, &peer, None).unwrap());
        }
        report.merged(&source, facts.ports.len())
    }
}

/// The pairs `ID` or `ID-what` in the folder, by their failing file.
fn stems() -> Vec<String> {
    let mut stems = Vec::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(stem) = name.strip_suffix(".fail.toml") {
            stems.push(stem.to_owned());
        } else {
            let stem = name.strip_suffix(".pass.toml");
            let pair = stem.map(|stem| folder().join(format!("{stem}.fail.toml")));
            assert!(name == "base.toml" || pair.is_some_and(|f| f.exists()), "{name} is alone");
        }
    }
    stems.sort();
    stems
}

fn id_of(stem: &str) -> Id {
    let name = stem.split('-').next().unwrap_or_default();
    *Id::ALL.iter().find(|id| id.name() == name).unwrap_or_else(|| panic!("{stem}: no check"))
}

fn all_ids(report: &Report) -> Vec<Id> {
    report.clone().unfolded().findings().iter().map(|finding| finding.id).collect()
}

#[test]
fn the_base_has_no_finding() {
    let base = Case { stem: "base".into(), text: base(), told: BTreeMap::new() };
    assert_eq!(base.lint().findings(), []);
}

#[test]
fn every_check_has_a_pair_of_files() {
    let stems = stems();
    for id in Id::ALL {
        assert!(stems.iter().any(|stem| stem == id.name()), "{id} has no file of its name");
    }
}

#[test]
fn each_failing_file_has_its_finding_and_nothing_as_grave() {
    for stem in stems() {
        let case = Case::read(&format!("{stem}.fail")).unwrap();
        let (id, report) = (id_of(&stem), case.lint());
        let finding = report.findings().first().unwrap_or_else(|| panic!("{stem}: nothing"));
        let grave = report.findings().iter().filter(|f| f.severity >= finding.severity);
        let grave: Vec<Id> = grave.map(|finding| finding.id).collect();
        assert_eq!(grave, [id], "{stem}: {:#?}", report.findings());
        assert!(finding.severity <= id.severity(), "{stem}");
        // One of an id's files shows it at its gravest.
        assert!(stem.contains('-') || finding.severity == id.severity(), "{stem}");
        let what = &finding.what;
        assert!(finding.line.is_some() && !what.fix.is_empty() && !what.message.is_empty());
        assert_eq!(what.value.is_some(), what.limit.is_some(), "{stem}: {what}");
    }
}

#[test]
fn each_passing_file_is_without_it_and_without_errors() {
    for stem in stems() {
        let case = Case::read(&format!("{stem}.pass")).unwrap_or_else(|| panic!("{stem}: no pass"));
        let (id, report) = (id_of(&stem), case.lint());
        assert!(!all_ids(&report).contains(&id), "{stem}: {:#?}", report.findings());
        let errors = report.findings().iter().filter(|f| f.severity == Severity::Error);
        let errors: Vec<&str> = errors.map(|finding| finding.id.name()).collect();
        let left: Vec<&str> = case.told.get("leaves").map(String::as_str).into_iter().collect();
        assert_eq!(errors, left, "{stem}: {:#?}", report.findings());
    }
}

#[test]
fn a_profile_is_refused_exactly_when_it_has_an_error() {
    for stem in stems() {
        for end in ["fail", "pass"] {
            let case = Case::read(&format!("{stem}.{end}")).unwrap();
            let Ok(doc) = ProfileDoc::load(&Source::new("p", &case.text)) else { continue };
            let facts = case.facts();
            let report = lint::profile(&doc, &facts, Options::default());
            let loaded = resolve(&doc, &facts).and_then(|plan| plan.profile(1));
            assert_eq!(loaded.is_err(), report.first_error().is_some(), "{stem}.{end}");
            if let (Err(error), Some(first)) = (loaded, report.first_error()) {
                assert_eq!(holdfast_api::doc::Finding::from(error), first.what, "{stem}.{end}");
            }
        }
    }
}
