//! What other systems write: CONFIG_DB, `pg_profile_lookup.ini`, AC5P command lines (SPEC 10).

use crate::profile::check_round_trip;
use holdfast_core::units::{BitRate, Cells};
use holdfast_plan::export::{export, ExportInput};
use holdfast_plan::import::{import, AssumedMarks, Format, ImportOptions, Imported, PgLookup};
use holdfast_plan::resolve;

const FORMATS: [Format; 3] = [Format::Sonic, Format::PgLookup, Format::Ac5pCli];

/// All that a user can say beside the text.
fn told() -> ImportOptions {
    ImportOptions {
        cells: Some(Cells(1_000_000)),
        assumed: Some(AssumedMarks { headroom: Cells(768), xon: Cells(512) }),
        speed: Some(BitRate::gigabits(100)),
        cable: Some("40m".to_owned()),
        ports: Some(4),
        ..ImportOptions::new("fuzz")
    }
}

/// Imports a text as what it looks like, or as everything, with and without what a user can add.
pub fn target(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let guess = Format::guess(&text);
    let formats = guess.as_slice();
    let formats = if formats.is_empty() { &FORMATS } else { formats };
    let _ = PgLookup::parse(&text);
    for format in formats {
        for options in [told(), ImportOptions::new("bare")] {
            match import(&text, *format, &options) {
                Ok(imported) => check(&imported, *format),
                Err(finding) => {
                    assert!(!finding.key.is_empty() && !finding.message.is_empty());
                    assert!(!finding.fix.is_empty(), "{finding}");
                }
            }
        }
    }
}

/// The profile can be written and read; if it can be planned and exported, that is read too.
fn check(imported: &Imported, format: Format) {
    check_round_trip(&imported.doc);
    let facts = imported.facts();
    let Ok(plan) = resolve(&imported.doc, &facts) else { return };
    assert!(plan.profile(1).is_ok());
    let doc = &imported.doc;
    let input = ExportInput { doc, plan: &plan, facts: &facts, cable: Some("40m") };
    if let Ok(exported) = export(&input, format) {
        let options = ImportOptions {
            cell: plan.spec().cell,
            cells: Some(plan.spec().total),
            speed: facts.ports.first().map(|port| port.speed),
            cable: Some("40m".to_owned()),
            ports: u32::try_from(facts.ports.len()).ok(),
            ..told()
        };
        let again = import(&exported.text, format, &options);
        assert!(again.is_ok(), "{}\n{}", again.unwrap_err(), exported.text);
    }
}
