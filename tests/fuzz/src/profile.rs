//! A profile's text: document, plan, lint, as a switch and `holdfast lint` read it (SPEC 10).

use holdfast_api::doc::{DocError, Source};
use holdfast_api::profile_doc::ProfileDoc;
use holdfast_core::units::BitRate;
use holdfast_plan::lint::{self, Options};
use holdfast_plan::{budget, resolve, PlanError, PortFacts, SwitchFacts};
use std::sync::LazyLock;

/// Two ports of 10G, as most labs have them.
pub(crate) static FACTS: LazyLock<SwitchFacts> = LazyLock::new(|| {
    let port = |n| PortFacts {
        name: format!("h{n}"),
        speed: BitRate::gigabits(10),
        mtu: 1500,
        trust: None,
        link_pause: false,
    };
    SwitchFacts { ports: vec![port(1), port(2)], flood_limit: 64, rx_ring: 2048, spare_ports: 0 }
});

/// Reads a profile. What is wrong has a place and a remedy; what is right is written and read
/// again; the linter refuses exactly what the planner refuses.
pub fn target(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    let source = Source::new("fuzz.toml", text);
    let doc = match ProfileDoc::load(&source) {
        Ok(doc) => doc,
        Err(error) => return check_error(&error, text),
    };
    check_round_trip(&doc);
    let report = lint::profile(&doc, &FACTS, Options::default());
    let planned = resolve(&doc, &FACTS);
    assert_eq!(planned.is_err(), report.first_error().is_some(), "{:?}", planned.err());
    let names = FACTS.names();
    match planned {
        Ok(plan) => {
            let profile = plan.profile(1);
            assert!(profile.is_ok(), "planned without an error, refused: {:?}", profile.err());
            let (ingress, egress) = budget(plan.spec());
            let parts = ingress.guaranteed + ingress.headroom + ingress.pools;
            let total = plan.spec().total.0;
            assert_eq!(u64::from(total), u64::from(parts) + u64::from(ingress.left_over));
            let parts = u64::from(egress.guarantees) + u64::from(egress.shared);
            assert_eq!(u64::from(total), parts + u64::from(egress.left_over));
        }
        Err(error) => check_plan_error(error, &source, &names),
    }
    for finding in report.merged(&source, names.len()).findings() {
        assert!(finding.line.is_some_and(|line| line <= lines(text)), "{}", finding.what);
        assert!(!finding.what.key.is_empty() && !finding.what.fix.is_empty());
    }
}

fn check_plan_error(error: PlanError, source: &Source, names: &[String]) {
    check_error(&source.locate(error.finding(names)), source.text());
}

/// The error names a line of the file, or the whole file, a key, and what to do.
pub(crate) fn check_error(error: &DocError, text: &str) {
    let line = error.line.expect("a text has lines");
    assert!((1..=lines(text)).contains(&line), "line {line} of {}: {error}", lines(text));
    let finding = &error.finding;
    assert!(!finding.key.is_empty() && !finding.message.is_empty() && !finding.fix.is_empty());
}

/// Lines of a text, the one behind its last newline included.
fn lines(text: &str) -> usize {
    1 + text.bytes().filter(|byte| *byte == b'\n').count()
}

/// What can be loaded can be written, and reads as the same document.
pub(crate) fn check_round_trip(doc: &ProfileDoc) {
    let text = doc.to_toml().unwrap_or_else(|error| panic!("{error}: {doc:?}"));
    let again = ProfileDoc::load(&Source::new("written", text.clone()));
    let again = again.unwrap_or_else(|error| panic!("{error}\n{text}"));
    // A probability that isn't a number is no probability, and is refused by the plan.
    if format!("{doc:?}").contains("NaN") {
        return;
    }
    assert_eq!(&again, doc, "{text}");
}
