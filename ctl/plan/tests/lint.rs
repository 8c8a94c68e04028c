//! Every check of the linter has a profile that it finds and one that just passes, the shipped
//! profiles have no error, and nothing that is no profile makes it panic.
// A test fails by panicking, in its own functions too.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use holdfast_api::doc::Source;
use holdfast_api::profile_doc::ProfileDoc;
use holdfast_core::units::BitRate;
use holdfast_plan::lint::{self, End, Id, Options, Report, Severity};
use holdfast_plan::{resolve, PortFacts, SwitchFacts};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::Cell;
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
    SwitchFacts {
        ports: (1..=ports).map(port).collect(),
        flood_limit: 64,
        rx_ring: 2048,
        spare_ports: 0,
    }
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
        if self.stem.starts_with("P04") {
            let peer = ProfileDoc::load(&Source::new("base", base())).unwrap();
            let end = |doc| End { doc, facts: &facts, port: None };
            report = report.and(lint::link(end(&doc), end(&peer)).unwrap());
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
    for id in Id::ALL.iter().filter(|id| !id.is_live()) {
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

/// The profiles in the folder with ports they are for: their name says speed and frame size.
fn shipped() -> Vec<(Source, u64, u16)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/profiles");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ext| ext == "toml"));
    files.sort();
    let describe = |path: &PathBuf| {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let speed = name.split('-').find_map(|word| word.strip_suffix('g')?.parse().ok());
        let small = name.starts_with("veth") && !name.contains("jumbo");
        (Source::read(path).unwrap(), speed.unwrap_or(100), if small { 1500 } else { 9000 })
    };
    files.iter().map(describe).collect()
}

#[test]
fn shipped_profiles_have_no_errors() {
    let shipped = shipped();
    assert!(shipped.len() >= 4, "{shipped:?}");
    for (source, gbit, mtu) in shipped {
        let doc = ProfileDoc::load(&source).unwrap_or_else(|error| panic!("{error}"));
        for ports in [2, 16] {
            let report = lint::profile(&doc, &facts(ports, gbit, mtu), Options::default());
            let first = report.first_error();
            assert!(first.is_none(), "{} on {ports} ports: {first:?}", source.file());
        }
    }
}

#[test]
fn ports_that_are_alike_are_one_finding_and_others_are_named() {
    let text = base().replace("xon = 1024", "xon = 300");
    let text = format!("{text}\n[port.h2.pg.3]\nxon = 310\n\n[port.h3.pg.3]\nxon = 1024\n");
    let source = Source::new("p.toml", &text);
    let doc = ProfileDoc::load(&source).unwrap();
    let report = lint::profile(&doc, &facts(5, 10, 1500), Options::default());
    assert_eq!(report.findings().len(), 4);
    let merged = report.merged(&source, 5);
    let places: Vec<(&str, &[String])> =
        merged.findings().iter().map(|f| (f.what.key.as_str(), f.ports.as_slice())).collect();
    let (most, one) = (["h1", "h4", "h5"].map(String::from), ["h2"].map(String::from));
    let expected: [(&str, &[String]); 2] =
        [("port.h1.pg.3.xon", &most), ("port.h2.pg.3.xon", &one)];
    assert_eq!(places, expected);
    let line = |n: usize| text.lines().nth(merged.findings()[n].line.unwrap() - 1);
    assert_eq!((line(0), line(1)), (Some("xon = 300"), Some("xon = 310")));
}

#[test]
fn what_is_implied_is_folded_and_can_be_unfolded() {
    let case = Case::read("B04.fail").unwrap();
    let report = case.lint();
    let implied: Vec<Id> = report.findings()[0].implied.iter().map(|f| f.id).collect();
    assert_eq!(implied, [Id::B07, Id::B12]);
    assert_eq!(report.count(Severity::Warning), 0);
    let unfolded = report.unfolded();
    assert_eq!(all_ids(&unfolded), [Id::B04, Id::B07, Id::B12]);
    assert_eq!(unfolded.count(Severity::Warning), 2);
    // B05 makes the level of resume 0, at the other port's queue as well.
    let report = Case::read("B05.fail").unwrap().lint();
    let implied: Vec<Id> = report.findings()[0].implied.iter().map(|f| f.id).collect();
    assert_eq!(implied, [Id::B06, Id::E03]);
}

#[test]
fn as_json_a_finding_has_id_place_numbers_why_and_fix() {
    let report = Case::read("B04.fail").unwrap().lint();
    let json = serde_json::to_value(&report.findings()[0]).unwrap();
    assert_eq!((&json["id"], &json["severity"]), (&"B04".into(), &"error".into()));
    assert_eq!(json["where"]["key"], "pg.3.xoff");
    assert_eq!(json["where"]["ports"], serde_json::json!(["h1", "h2"]));
    assert!(json["where"]["line"].as_u64().is_some_and(|line| line > 1));
    assert_eq!((&json["value"], &json["limit"]), (&"8192".into(), &"below 8192".into()));
    assert!(json["why"].as_str().is_some_and(|why| why.contains("Headroom")));
    assert!(json["fix"].as_str().is_some_and(|fix| fix.starts_with("lower xoff")));
    assert_eq!(json["implied"][0]["id"], "B07");
}

#[test]
fn all_that_is_wrong_is_reported_at_once() {
    let text = base()
        .replace("xoff = 4096", "xoff = 8192")
        .replace("kmin = 256", "kmin = 0")
        .replace("pause_quanta = 65535", "pause_quanta = 1\nenabled = [3, 5]");
    let doc = ProfileDoc::load(&Source::new("p", text)).unwrap();
    let report = lint::profile(&doc, &facts(1, 10, 1500), Options::default());
    let ids: Vec<Id> = report.findings().iter().map(|finding| finding.id).collect();
    assert_eq!(ids, [Id::B04, Id::E01, Id::P01, Id::P05]);
    // What can't be planned hides the rest, but not what else can't.
    let text = base()
        .replace("pmax = 0.2", "pmax = 2.0")
        .replace("pause_quanta = 65535", "pause_quanta = 0")
        .replace("xoff = 4096", "xoff = 8192");
    let doc = ProfileDoc::load(&Source::new("p", text)).unwrap();
    let report = lint::profile(&doc, &facts(1, 10, 1500), Options::default());
    let ids: Vec<Id> = report.findings().iter().map(|finding| finding.id).collect();
    assert_eq!(ids, [Id::D01, Id::E06]);
}

/// Thresholds of a lossless PG and its queue, around those of the base.
#[derive(Clone, Copy, Debug)]
struct Thresholds {
    headroom: u32,
    bound: (bool, u32),
    xoff: u32,
    xon: u32,
    absolute: bool,
    kmin: u32,
    kmax: u32,
}

impl Thresholds {
    fn any() -> impl Strategy<Value = Self> {
        let headroom = prop_oneof![9 => 2793u32..4000, 1 => 0u32..2793];
        let levels = (1u32..12_000, 0u32..6_000, any::<bool>());
        let line = (0u32..3_000, 0u32..6_000);
        let bound = (any::<bool>(), 0u32..11);
        (headroom, levels, line, bound).prop_map(|(headroom, levels, line, bound)| {
            let ((xoff, xon, absolute), (kmin, kmax)) = (levels, line);
            Self { headroom, bound, xoff, xon, absolute, kmin, kmax }
        })
    }

    fn document(&self) -> String {
        let bound = match self.bound {
            (true, size) => format!("limit = {}", size * 1_500),
            (false, log2) => format!("alpha = {}", i64::from(log2) - 3),
        };
        let mode = if self.absolute { "absolute" } else { "offset" };
        base()
            .replace("headroom = 3072", &format!("headroom = {}\n{bound}", self.headroom))
            .replace("xoff = 4096", &format!("xoff = {}\nxon_mode = \"{mode}\"", self.xoff))
            .replace("xon = 1024", &format!("xon = {}", self.xon))
            .replace("kmin = 256", &format!("kmin = {}", self.kmin))
            .replace("kmax = 1536", &format!("kmax = {}", self.kmax))
    }

    /// 0 < Kmin <= Kmax < XOFF - XON < XOFF < limit, one PG alone settling at the limit.
    fn are_in_order(&self) -> bool {
        let pool = 16_384;
        let limit = match self.bound {
            (true, size) => f64::from((size * 1_500).min(pool)),
            (false, log2) => {
                let alpha = 2f64.powi(i32::try_from(log2).unwrap() - 3);
                (alpha * f64::from(pool) / (1.0 + alpha)).floor()
            }
        };
        let resume = if self.absolute { Some(self.xon) } else { self.xoff.checked_sub(self.xon) };
        let above = |resume: u32| self.kmax < resume && resume < self.xoff;
        let line = 0 < self.kmin && self.kmin <= self.kmax;
        line && resume.is_some_and(above) && f64::from(self.xoff) < limit
    }
}

#[test]
fn what_has_no_errors_keeps_the_order_of_the_watermarks() {
    let (loaded, refused) = (Cell::new(0), Cell::new(0));
    let mut runner = TestRunner::new(ProptestConfig::with_cases(2_000));
    let outcome = runner.run(&Thresholds::any(), |thresholds| {
        let doc = ProfileDoc::load(&Source::new("p", thresholds.document())).unwrap();
        match resolve(&doc, &facts(2, 10, 1500)) {
            Ok(_) => {
                loaded.set(loaded.get() + 1);
                prop_assert!(thresholds.are_in_order(), "{thresholds:?}");
            }
            Err(_) => refused.set(refused.get() + 1),
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    assert!(loaded.get() > 50 && refused.get() > 50, "{} {}", loaded.get(), refused.get());
}

/// A document with some of its lines changed, doubled, swapped or lost.
fn mutated() -> impl Strategy<Value = String> {
    let texts: Vec<String> = stems()
        .iter()
        .flat_map(|stem| ["fail", "pass"].map(|end| format!("{stem}.{end}")))
        .filter_map(|name| Case::read(&name))
        .map(|case| case.text)
        .chain([std::fs::read_to_string(folder().join("../../../../deploy/samples/profile.toml"))
            .unwrap()])
        .collect();
    let values = ["0", "1", "4294967295", "-1", "0.5", "\"1%\"", "\"100%\"", "\"limit\"", "[]"];
    let values = [&values[..], &["true", "2097151", "\"9MiB\"", "[0, 1, 2]", "{}", "nan"]].concat();
    let value = prop::sample::select(values);
    let change = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..5u8, value);
    let changes = prop::collection::vec(change, 1..8);
    (prop::sample::select(texts), changes).prop_map(|(text, changes)| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for (one, other, kind, value) in changes {
            let (one, other) = (one.index(lines.len()), other.index(lines.len()));
            match kind {
                0 => lines.swap(one, other),
                1 => drop(lines.remove(one)),
                2 => lines.insert(one, lines[other].clone()),
                _ => {
                    if let Some((key, _)) = lines[one].split_once(" = ") {
                        lines[one] = format!("{key} = {value}");
                    }
                }
            }
            if lines.is_empty() {
                lines.push(String::new());
            }
        }
        lines.join("\n")
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn no_document_makes_the_linter_panic(text in mutated(), ports in 0usize..4, mtu: u16) {
        let source = Source::new("p", &text);
        let facts = facts(ports, 10, mtu);
        let report = match ProfileDoc::load(&source) {
            Ok(doc) => {
                let report = lint::profile(&doc, &facts, Options { queues_at_once: u32::MAX });
                let end = End { doc: &doc, facts: &facts, port: None };
                report.and(lint::link(end, end).unwrap())
            }
            Err(error) => lint::unreadable(error),
        };
        prop_assert!(report.findings().iter().all(|finding| !finding.what.fix.is_empty()));
        let _ = report.merged(&source, ports);
    }
}
