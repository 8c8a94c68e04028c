//! What `deploy` ships is read, planned and complete.
// A test fails by panicking, in its own functions too.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use holdfast_api::doc::Source;
use holdfast_api::message::ProfileReply;
use holdfast_api::profile_doc::{
    BufferDoc, FormulaDoc, MapsDoc, PfcDoc, PgDoc, PoolDoc, PortOverrideDoc, ProfileDoc, QueueDoc,
    SchedulerDoc, WatchdogDoc, WredDoc,
};
use holdfast_api::switch_doc::{FdbDoc, LogDoc, PortDoc, RingsDoc, StaticDoc, SwitchDoc, TraceDoc};
use holdfast_core::ids::PgId;
use holdfast_core::profile::Xoff;
use holdfast_core::units::{BitRate, Cells};
use holdfast_plan::{budget, resolve, PortFacts, ProfilePlan, SwitchFacts};
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

fn deploy(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(path)
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
        ports: (0..ports).map(port).collect(),
        flood_limit: 1024,
        rx_ring: 2048,
        spare_ports: 0,
    }
}

fn plan(name: &str, facts: &SwitchFacts) -> ProfilePlan {
    let source = Source::read(&deploy(&format!("profiles/{name}.toml"))).unwrap();
    let doc = ProfileDoc::load(&source).unwrap();
    assert_eq!(doc.name, name);
    resolve(&doc, facts).unwrap_or_else(|error| panic!("{}", source.locate(error.into())))
}

#[test]
fn lab_profiles_fit_2_to_64_ports_with_headroom_above_its_need() {
    let shipped = [
        ("veth-lab-1g", 1, 1500, 3072, 2354),
        ("veth-lab-10g", 10, 1500, 3072, 2793),
        ("veth-lab-1g-jumbo", 1, 9000, 7168, 6962),
        ("veth-lab-10g-jumbo", 10, 9000, 8192, 7401),
    ];
    for (name, gbit, mtu, headroom, need) in shipped {
        for ports in [2, 3, 64] {
            let plan = plan(name, &facts(ports, gbit, mtu));
            let profile = plan.profile(1).unwrap();
            assert_eq!(plan.headroom_terms().len(), ports);
            for term in plan.headroom_terms() {
                assert_eq!((term.headroom, term.need), (Cells(headroom), Cells(need)), "{name}");
            }
            let (ingress, egress) = budget(profile.spec());
            let spare = if mtu == 9000 { 4096 } else { 2048 };
            assert_eq!((ingress.left_over, egress.left_over), (spare, 0), "{name}");
        }
    }
}

#[test]
fn the_10g_lab_profile_has_the_published_numbers() {
    let plan = plan("veth-lab-10g", &facts(2, 10, 1500));
    let spec = plan.spec();
    let pg = spec.ports[0].pgs[PgId::new(3).unwrap()];
    assert_eq!(pg.xoff, Xoff::At(Cells(4096)));
    assert_eq!(
        spec.pools,
        [("lossless".to_owned(), Cells(16_384)), ("lossy".to_owned(), Cells(4_096))]
    );
    assert_eq!(spec.ports[0].pfc.quanta.0, 65_535);
    assert_eq!(spec.ports[0].tx_inflight, 12_500);
    assert!(plan.spec().ports[0].watchdog.is_none());
}

#[test]
fn a_lab_profile_on_ports_too_large_for_it_is_refused_with_the_need() {
    let source = Source::read(&deploy("profiles/veth-lab-1g.toml")).unwrap();
    let doc = ProfileDoc::load(&source).unwrap();
    let error = source.locate(resolve(&doc, &facts(2, 1, 9000)).unwrap_err().into());
    assert_eq!(error.finding.key, "port.h0.pg.3.headroom");
    let line = source.text().lines().nth(error.line.unwrap() - 1);
    assert_eq!(line, Some("headroom = 3072"));
    assert_eq!(error.finding.limit.as_deref(), Some("13874"));
}

/// A profile can be judged from what a running switch shows of it: nothing is left out.
#[test]
fn the_answer_to_show_profile_is_the_whole_profile() {
    let all = ["veth-lab-1g", "veth-lab-10g-jumbo", "azure", "ac5p-100g-long", "ac5p-400g-long"];
    for name in all {
        let (gbit, mtu) = if name == "veth-lab-1g" { (1, 1500) } else { (10, 9000) };
        let plan = plan(name, &facts(3, gbit, mtu));
        let profile = plan.profile(1).unwrap();
        let reply = ProfileReply::new(&profile, plan.port_names(), Vec::new());
        let line = serde_json::to_string(&reply).unwrap();
        let read: ProfileReply = serde_json::from_str(&line).unwrap();
        assert_eq!(read.spec().unwrap(), *plan.spec(), "{name}");
    }
}

#[test]
fn the_samples_are_one_switch() {
    let source = Source::read(&deploy("samples/switch.toml")).unwrap();
    let switch = SwitchDoc::load(&source).unwrap();
    let source = Source::read(&deploy("samples/profile.toml")).unwrap();
    let doc = ProfileDoc::load(&source).unwrap();
    let facts = SwitchFacts::new(&switch, |_| 1500);
    let plan = resolve(&doc, &facts).unwrap_or_else(|e| panic!("{}", source.locate(e.into())));
    let profile = plan.profile(1).unwrap();
    let reply = ProfileReply::new(&profile, plan.port_names(), Vec::new());
    assert_eq!(reply.spec().unwrap(), *plan.spec(), "every key, and back");
    assert!(plan.spec().ports[0].watchdog.is_none());
    assert!(plan.spec().ports[1].watchdog.is_some());
}

#[test]
fn the_minimal_sample_runs_on_what_the_readme_makes() {
    let file = deploy("samples/minimal.toml");
    let switch = SwitchDoc::load(&Source::read(&file).unwrap()).unwrap();
    let source = Source::read(&switch.profile_path(&file)).unwrap();
    let plan = resolve(&ProfileDoc::load(&source).unwrap(), &SwitchFacts::new(&switch, |_| 1500));
    assert_eq!(plan.unwrap().port_names(), ["h1", "h2", "h3"]);
    let readme = std::fs::read_to_string(deploy("../README.md")).unwrap();
    assert!(readme.contains("holdfast run deploy/samples/minimal.toml"));
    let hosts = readme.split("for n in ").nth(1).and_then(|text| text.split("; do").next());
    let named: Vec<String> =
        hosts.unwrap_or_default().split(' ').map(|number| format!("h{number}")).collect();
    assert_eq!(named, switch.port_names());
    assert!(readme.contains("ip link add h$n netns sw type veth"));
    for port in &switch.ports {
        assert_eq!((port.netns.as_deref(), &port.ifname), (Some("sw"), &port.name));
    }
}

/// The keys a document type has: an unknown one is refused with a list of them.
fn keys_of<T: DeserializeOwned + std::fmt::Debug>() -> Vec<String> {
    let text = match toml::from_str::<T>("no-such-key = 0\n") {
        Ok(doc) => panic!("an unknown key was taken: {doc:?}"),
        Err(error) => error.message().to_owned(),
    };
    let expected = text.split_once("expected").expect("a list of keys").1;
    let keys: Vec<String> = expected.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    assert!(!keys.is_empty(), "{text}");
    keys
}

/// All keys of a sample, each with the section it stands in: names and numbers left out.
fn sample_keys(path: &str) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(deploy(path)).unwrap();
    let table: toml::Table = toml::from_str(&text).unwrap();
    let mut keys = Vec::new();
    collect("top", &toml::Value::Table(table), &mut keys);
    keys
}

fn collect(section: &str, value: &toml::Value, out: &mut Vec<(String, String)>) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                out.push((section.to_owned(), key.clone()));
                let numbered = key.bytes().all(|b| b.is_ascii_digit());
                let named = section == "port" && matches!(value, toml::Value::Table(_));
                let named = named
                    && !["maps", "pfc", "scheduler", "watchdog", "pg", "queue"]
                        .contains(&key.as_str());
                collect(if numbered || named { section } else { key }, value, out);
            }
        }
        toml::Value::Array(array) => array.iter().for_each(|value| collect(section, value, out)),
        _ => {}
    }
}

fn has_all<T: DeserializeOwned + std::fmt::Debug>(sample: &[(String, String)], section: &str) {
    for key in keys_of::<T>() {
        let there = sample.iter().any(|(s, k)| s == section && *k == key);
        assert!(there, "the sample lacks the key {key} in section {section}");
    }
}

#[test]
fn the_samples_have_every_key() {
    let sample = sample_keys("samples/switch.toml");
    has_all::<SwitchDoc>(&sample, "top");
    has_all::<RingsDoc>(&sample, "rings");
    has_all::<FdbDoc>(&sample, "fdb");
    has_all::<StaticDoc>(&sample, "static");
    has_all::<LogDoc>(&sample, "log");
    has_all::<TraceDoc>(&sample, "trace");
    has_all::<PortDoc>(&sample, "port");
    let sample = sample_keys("samples/profile.toml");
    has_all::<ProfileDoc>(&sample, "top");
    has_all::<FormulaDoc>(&sample, "formula");
    has_all::<BufferDoc>(&sample, "buffer");
    has_all::<PoolDoc>(&sample, "pool");
    has_all::<MapsDoc>(&sample, "maps");
    has_all::<PgDoc>(&sample, "pg");
    has_all::<QueueDoc>(&sample, "queue");
    has_all::<WredDoc>(&sample, "wred");
    has_all::<PfcDoc>(&sample, "pfc");
    has_all::<SchedulerDoc>(&sample, "scheduler");
    has_all::<WatchdogDoc>(&sample, "watchdog");
    has_all::<PortOverrideDoc>(&sample, "port");
}

#[test]
fn each_key_of_the_samples_is_explained() {
    for path in ["samples/switch.toml", "samples/profile.toml"] {
        let text = std::fs::read_to_string(deploy(path)).unwrap();
        let mut explained: Vec<&str> = Vec::new();
        let mut before = "";
        for line in text.lines() {
            if let Some((key, _)) = line.split_once(" = ").filter(|_| !line.starts_with('#')) {
                let known = explained.contains(&key);
                assert!(known || before.starts_with('#'), "{path}: {key} has no comment");
                explained.push(key);
            }
            before = line;
        }
    }
}
