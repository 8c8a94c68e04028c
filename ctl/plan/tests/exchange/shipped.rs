//! The shipped profiles: what each format can't say of them is named, the rest comes back.

use holdfast_api::amount::XoffAmount;
use holdfast_api::doc::{Finding, Source};
use holdfast_api::profile_doc::{PfcDoc, ProfileDoc, Slot};
use holdfast_core::profile::PgSpec;
use holdfast_core::units::BitRate;
use holdfast_plan::export::{export, ExportInput, Exported};
use holdfast_plan::import::{import, Format, ImportOptions, Imported};
use holdfast_plan::{resolve, PortFacts, ProfilePlan, SwitchFacts};
use std::path::{Path, PathBuf};

fn profiles() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/profiles");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "toml"));
    files.sort();
    assert!(files.len() >= 4, "{files:?}");
    files
}

fn load(path: &Path) -> ProfileDoc {
    ProfileDoc::load(&Source::read(path).unwrap()).unwrap()
}

/// Ports for which a profile is meant, by its name.
fn facts(doc: &ProfileDoc) -> SwitchFacts {
    let has = |part: &str| doc.name.contains(part);
    let gbit = if has("400g") {
        400
    } else if has("10g") {
        10
    } else if has("1g") {
        1
    } else {
        100
    };
    let mtu = if has("veth") && !has("jumbo") { 1_500 } else { 9_000 };
    let port = |n| PortFacts {
        name: format!("h{n}"),
        speed: BitRate::gigabits(gbit),
        mtu,
        trust: None,
        link_pause: false,
    };
    SwitchFacts {
        ports: (0..4).map(port).collect(),
        flood_limit: 1_024,
        rx_ring: 2_048,
        spare_ports: 0,
    }
}

fn plan(doc: &ProfileDoc) -> ProfilePlan {
    resolve(doc, &facts(doc)).unwrap_or_else(|error| panic!("{}: {error}", doc.name))
}

fn exported(doc: &ProfileDoc, format: Format) -> Result<Exported, Vec<Finding>> {
    let (plan, facts) = (plan(doc), facts(doc));
    export(&ExportInput { doc, plan: &plan, facts: &facts, cable: Some("40m") }, format)
}

fn back(doc: &ProfileDoc, format: Format) -> Imported {
    let text = exported(doc, format).unwrap_or_else(|e| panic!("{}: {e:?}", doc.name)).text;
    assert_eq!(Format::guess(&text), Some(format), "{text}");
    let (plan, facts) = (plan(doc), facts(doc));
    let options = ImportOptions {
        cell: plan.spec().cell,
        cells: Some(plan.spec().total),
        speed: Some(facts.ports[0].speed),
        cable: Some("40m".to_owned()),
        ports: Some(4),
        ..ImportOptions::new(doc.name.clone())
    };
    import(&text, format, &options).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// SONiC's form of a shipped profile: no watermark below the limit, no keys of this switch alone.
fn for_sonic(mut doc: ProfileDoc) -> ProfileDoc {
    for pg in doc.pgs.values_mut() {
        pg.xoff = pg.xoff.map(|_| XoffAmount::Limit);
    }
    doc.pfc = PfcDoc::default();
    doc.formula = None;
    doc.scheduler = Default::default();
    if let Some(watchdog) = &mut doc.watchdog {
        watchdog.back_off = Some(false);
    }
    doc
}

/// Whether it has a watermark below the limit: all but `azure`, which follows SONiC.
fn is_below_the_limit(doc: &ProfileDoc) -> bool {
    let below = doc.pgs.values().any(|pg| matches!(pg.xoff, Some(XoffAmount::At(_))));
    assert!(below || doc.name == "azure", "{}", doc.name);
    below
}

#[test]
fn a_watermark_below_the_limit_is_named_and_so_is_every_key_without_a_place() {
    for path in profiles() {
        let doc = load(&path);
        if !is_below_the_limit(&doc) {
            assert!(exported(&doc, Format::Sonic).is_ok(), "{}", doc.name);
            continue;
        }
        let wrong = exported(&doc, Format::Sonic).unwrap_err();
        let keys: Vec<&str> = wrong.iter().map(|finding| finding.key.as_str()).collect();
        let ends = |end: &str| keys.iter().filter(|key| key.ends_with(end)).count();
        assert!(ends(".xoff") >= 1, "{}: {keys:?}", doc.name);
        let quanta = doc.pfc.pause_quanta.is_some_and(|quanta| quanta != u16::MAX);
        assert_eq!(ends("pfc.pause_quanta"), usize::from(quanta), "{}: {keys:?}", doc.name);
        let mark = doc.pfc.rx_backlog_mark.is_some_and(|mark| mark != 256);
        assert_eq!(ends("pfc.rx_backlog_mark"), usize::from(mark), "{}: {keys:?}", doc.name);
        assert!(wrong.iter().all(|finding| !finding.fix.is_empty()));
    }
}

#[test]
fn at_the_limit_they_come_back_from_sonic_as_they_were() {
    for path in profiles() {
        let doc = for_sonic(load(&path));
        let imported = back(&doc, Format::Sonic);
        assert_eq!(imported.refused, [], "{}", doc.name);
        let again = resolve(&imported.doc, &facts(&doc)).unwrap();
        assert_eq!(again.spec(), plan(&doc).spec(), "{}", doc.name);
    }
}

/// SONiC's pfcwd takes detection times of 100 ms to 5 s and restoration times to 60 s.
#[test]
fn watchdog_times_that_sonic_does_not_take_are_named() {
    let lab = profiles().into_iter().find(|path| path.ends_with("azure.toml")).unwrap();
    let with = |detection: &str, restoration: &str| {
        let mut doc = for_sonic(load(&lab));
        let text = format!(
            "enabled = true\nback_off = false\ndetection_time = \"{detection}\"\n\
             restoration_time = \"{restoration}\"\n"
        );
        doc.watchdog = Some(toml::from_str(&text).unwrap());
        exported(&doc, Format::Sonic)
    };
    for (detection, restoration) in [("100ms", "100ms"), ("5s", "60s")] {
        let text = with(detection, restoration).unwrap().text;
        assert!(text.contains("PFC_WD"), "{text}");
    }
    for detection in ["99ms", "5001ms"] {
        let wrong = with(detection, "200ms").unwrap_err();
        let keys: Vec<&str> = wrong.iter().map(|finding| finding.key.as_str()).collect();
        assert_eq!(keys, ["port.h0.watchdog.detection_time"], "{wrong:?}");
        assert!(wrong[0].message.contains("pfcwd"), "{wrong:?}");
    }
    // No profile has a restoration time that pfcwd doesn't take.
    for restoration in ["99ms", "60001ms"] {
        let mut doc = for_sonic(load(&lab));
        let text = format!("back_off = false\nrestoration_time = \"{restoration}\"\n");
        doc.watchdog = Some(toml::from_str(&text).unwrap());
        let error = resolve(&doc, &facts(&doc)).unwrap_err().to_string();
        assert!(error.contains("100ms..60s"), "{error}");
    }
}

fn thresholds(plan: &ProfilePlan) -> Vec<(u8, PgSpec)> {
    let pgs = plan.spec().ports[0].pgs.iter().filter(|(_, pg)| pg.lossless);
    let without_pool = |pg: &PgSpec| PgSpec { pool: Default::default(), ..*pg };
    pgs.map(|(id, pg)| (id.number(), without_pool(pg))).collect()
}

#[test]
fn their_thresholds_come_back_from_the_pg_table() {
    for path in profiles() {
        let doc = for_sonic(load(&path));
        if is_below_the_limit(&load(&path)) {
            let wrong = exported(&load(&path), Format::PgLookup).unwrap_err();
            assert!(wrong[0].key.ends_with(".xoff"), "{wrong:?}");
        }
        let again = resolve(&back(&doc, Format::PgLookup).doc, &facts(&doc)).unwrap();
        let three = |plan: &ProfilePlan| thresholds(plan).into_iter().find(|(pg, _)| *pg == 3);
        assert!(three(&again).is_some());
        assert_eq!(three(&again), three(&plan(&doc)), "{}", doc.name);
    }
}

#[test]
fn their_thresholds_come_back_from_the_lines() {
    for path in profiles() {
        let mut doc = load(&path);
        if !is_below_the_limit(&doc) {
            // The lines have a threshold in cells or none.
            let wrong = exported(&doc, Format::Ac5pCli).unwrap_err();
            assert!(wrong.iter().any(|finding| finding.key.ends_with(".xoff")), "{wrong:?}");
            continue;
        }
        let wrong = exported(&doc, Format::Ac5pCli).unwrap_err();
        assert!(wrong.iter().all(|finding| finding.key.ends_with(".guaranteed")), "{wrong:?}");
        doc.pgs.values_mut().for_each(|pg| pg.guaranteed = None);
        let (first, again) =
            (plan(&doc), resolve(&back(&doc, Format::Ac5pCli).doc, &facts(&doc)).unwrap());
        // The lines have no DBA limit, which import says.
        let marks = |plan: &ProfilePlan| -> Vec<_> {
            let pgs = thresholds(plan).into_iter();
            pgs.map(|(id, pg)| (id, pg.xoff, pg.xon, pg.headroom, pg.priorities)).collect()
        };
        assert_eq!(marks(&again), marks(&first), "{}", doc.name);
        let queues = |plan: &ProfilePlan| -> Vec<_> {
            let queues = plan.spec().ports[0].queues.iter();
            queues.map(|(_, queue)| (queue.guarantee, queue.limit)).collect()
        };
        assert_eq!(queues(&again), queues(&first), "{}", doc.name);
    }
}

#[test]
fn ports_that_differ_have_lines_of_their_own() {
    let lab = profiles().into_iter().find(|path| path.ends_with("veth-lab-10g-jumbo.toml"));
    let mut doc = load(&lab.unwrap());
    doc.pgs.values_mut().for_each(|pg| pg.guaranteed = None);
    let three = Slot::new(3).unwrap();
    let mut over = doc.pgs[&three].clone();
    over.headroom = Some(holdfast_api::amount::CellAmount::Cells(9_999));
    doc.ports.entry("h2".to_owned()).or_default().pgs.insert(three, over);
    let text = exported(&doc, Format::Ac5pCli).unwrap().text;
    assert!(text.contains("interface h2\npfc enable priority 3\n"), "{text}");
    let again = resolve(&back(&doc, Format::Ac5pCli).doc, &facts(&doc)).unwrap();
    let headroom = |port: usize| again.spec().ports[port].pgs.0[3].headroom.0;
    assert_eq!(headroom(2), 9_999);
    assert_ne!(headroom(1), 9_999);
}
