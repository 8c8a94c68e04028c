//! `pg_profile_lookup.ini` alone, and the AC5P family's lines.

use super::*;
use holdfast_api::amount::XoffAmount;
use holdfast_core::units::BitRate;

const TABLE: &str = "# speed cable size xon xoff threshold xon_offset\n\
                     100000 5m 1248 2288 165568 0 2288   # a comment\n\n\
                     100000 40m 1248 2288 177632 -3 2288\n";

fn table_options() -> ImportOptions {
    ImportOptions {
        cells: Some(Cells(65_536)),
        speed: Some(BitRate::gigabits(100)),
        cable: Some("40m".to_owned()),
        ports: Some(8),
        ..ImportOptions::new("t")
    }
}

#[test]
fn formats_are_guessed_from_the_content() {
    assert_eq!(Format::guess("\u{feff} {\"PORT\": {}}"), Some(Format::Sonic));
    assert_eq!(Format::guess(TABLE), Some(Format::PgLookup));
    assert_eq!(Format::guess("!\ninterface x\n pfc headroom 3 cells\n"), Some(Format::Ac5pCli));
    assert_eq!(Format::guess("name = \"p\"\n"), None);
    assert_eq!(Format::guess(""), None);
}

#[test]
fn a_row_of_the_table_is_a_lossless_pg_on_one_pool() {
    let imported = import(TABLE, Format::PgLookup, &table_options()).unwrap();
    let pg = &imported.doc.pgs[&slot(3)];
    assert_eq!((pg.headroom, pg.alpha), (Some(CellAmount::Cells(694)), Some(-3)));
    assert_eq!(pg.xoff, Some(XoffAmount::Limit));
    // 8 ports of 5 + 694 cells.
    assert_eq!(imported.doc.pools[0].size, CellAmount::Cells(65_536 - 8 * 699));
    assert!(said(&imported, "pool") && said(&imported, "maps"));
}

#[test]
fn what_the_table_does_not_say_is_asked_for() {
    let without = |change: fn(&mut ImportOptions), key: &str| {
        let mut options = table_options();
        change(&mut options);
        let error = import(TABLE, Format::PgLookup, &options).unwrap_err();
        assert_eq!(error.key, key, "{error}");
    };
    without(|options| options.speed = None, "speed");
    without(|options| options.cable = None, "cable");
    without(|options| options.cells = None, "cells");
    without(|options| options.ports = None, "ports");
    without(|options| options.ports = Some(0), "ports");
    without(|options| options.ports = Some(65), "ports");
    without(|options| options.cells = Some(Cells(8 * 699)), "cells");
    without(|options| options.cable = Some("300m".to_owned()), "cable");
    without(|options| options.cable = Some("0m".to_owned()), "cable");
    without(|options| options.cable = Some("40".to_owned()), "cable");
}

#[test]
fn rows_that_are_none_are_refused_by_their_line() {
    for row in [
        "100000 40m 1248 2288 177632",
        "100000 40m 1248 2288 177632 0 1 1",
        "fast 40m 1248 2288 177632 0",
        "0 40m 1248 2288 177632 0",
        "100000 40m 1248 2288 177632 8",
        "100000 40m 1248 2288 0 0",
        "100000 40m -1 2288 177632 0",
        "100000 40 1248 2288 177632 0",
        "100000 +40m 1248 2288 177632 0",
        "100000 m 1248 2288 177632 0",
        "100000 040m 1 1 1 1",
    ] {
        let error = PgLookup::parse(&format!("{TABLE}{row}\n")).unwrap_err();
        assert_eq!(error.key, "line 5", "{row}: {error}");
    }
}

const LINES: &str = "! a switch\nhostname tor\nmmu buffer-mode flowctrl-enhance\n\
                     mmu queue-guarantee output unicast 3 set 36\nmmu queue-threshold 0 alpha 1\n\
                     mmu queue-threshold 1,2 4096 cells\n\
                     pfc enable priority 3\npfc pause-threshold 6800\n\
                     pfc resume-threshold 2048 cells\npfc headroom 768 cells\n\
                     interface ethernet 0/1\n pfc enable priority 4\n pfc pause-threshold 6000\n \
                     pfc resume-threshold 1536\n pfc headroom 512 cells\nexit\n";

fn lines_options() -> ImportOptions {
    ImportOptions { cells: Some(Cells(65_536)), ports: Some(8), ..ImportOptions::new("t") }
}

fn lines(text: &str) -> Result<Imported, Finding> {
    import(text, Format::Ac5pCli, &lines_options())
}

#[test]
fn lines_become_watermarks_in_cells() {
    let imported = lines(LINES).unwrap();
    let doc = &imported.doc;
    let pg = &doc.pgs[&slot(3)];
    assert_eq!(pg.xoff, Some(XoffAmount::At(CellAmount::Cells(6_800))));
    assert_eq!(
        (pg.xon, pg.headroom),
        (Some(CellAmount::Cells(2_048)), Some(CellAmount::Cells(768)))
    );
    assert_eq!(doc.pgs[&slot(4)].lossless, Some(false), "only one interface has it");
    let own = &doc.ports["ethernet-0-1"].pgs[&slot(4)];
    assert_eq!((own.lossless, own.headroom), (Some(true), Some(CellAmount::Cells(512))));
    assert_eq!(doc.queues[&slot(3)].guarantee, Some(CellAmount::Cells(36)));
    assert_eq!(doc.queues[&slot(0)].alpha, Some(1));
    assert_eq!(doc.queues[&slot(2)].limit, Some(CellAmount::Cells(4_096)));
    // The largest port has both PGs.
    assert_eq!(doc.pools[0].size, CellAmount::Cells(65_536 - 8 * (768 + 512)));
    assert!(imported.notes.iter().any(|note| note.became.contains("6800 - 2048 = 4752")));
    assert!(said(&imported, "line 2"));
    let port = |name: &str| PortFacts {
        name: name.to_owned(),
        speed: BitRate::gigabits(400),
        mtu: 9_100,
        trust: None,
        link_pause: false,
    };
    let ports = vec![port("ethernet-0-1"), port("ethernet-0-2")];
    let facts = SwitchFacts { ports, ..imported.facts() };
    let plan = crate::resolve(doc, &facts).unwrap();
    plan.profile(1).unwrap();
    let enabled = |port: usize| plan.spec().ports[port].pfc.enabled.iter().count();
    assert_eq!((enabled(0), enabled(1)), (2, 1));
}

#[test]
fn lines_that_cannot_be_expressed_are_named_by_number() {
    let wrong = [
        ("pfc enable priority 3", "pfc enable priority 8", "line 7"),
        ("pfc enable priority 3", "pfc enable priority 3,3", "line 7"),
        ("pfc headroom 768 cells", "pfc headroom 768 KB", "line 10"),
        ("pfc headroom 768 cells", "pfc headroom", "line 10"),
        ("pfc headroom 768 cells", "pfc headroom -1 cells", "line 10"),
        ("pfc headroom 768 cells", "pfc headroom priority 5 768 cells", "line 10"),
        ("pfc headroom 768 cells", "", "line 7"),
        ("pfc pause-threshold 6800", "", "line 7"),
        ("pfc headroom 768 cells", "pfc headroom 768\npfc headroom 769", "line 11"),
        ("pfc headroom 768 cells", "pfc watchdog on", "line 10"),
        ("pfc headroom 768 cells", "no pfc headroom", "line 10"),
        ("flowctrl-enhance", "burst-enhance", "line 3"),
        ("mmu buffer-mode flowctrl-enhance", "", "mmu buffer-mode"),
        ("mmu queue-threshold 0 alpha 1", "mmu queue-threshold 0 alpha 8", "line 5"),
        ("mmu queue-threshold 0 alpha 1", "mmu queue-threshold 0 50%", "line 5"),
        ("mmu queue-threshold 0 alpha 1", "mmu queue-threshold 1 alpha 1", "line 6"),
        ("mmu queue-threshold 0 alpha 1", "mmu queue-threshold", "line 5"),
        ("mmu queue-threshold 0 alpha 1", "mmu service-pool 1", "line 5"),
        ("interface ethernet 0/1", "interface ethernet 0/1,2", "line 11"),
    ];
    for (old, new, key) in wrong {
        let error = lines(&LINES.replacen(old, new, 1));
        let Err(error) = error else { panic!("{new:?} was taken") };
        assert_eq!(error.key, key, "{new:?}: {error}");
    }
    assert_eq!(lines("mmu buffer-mode flowctrl-enhance").unwrap_err().key, "pfc enable");
}
