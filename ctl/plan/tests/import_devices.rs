//! Five public devices' CONFIG_DB become profiles that plan, with the cells that a hand computes.
// A test fails by panicking, in its own functions too.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use holdfast_core::ids::{Cos, Dscp, PgId, Priority, QueueId};
use holdfast_core::profile::{Limit, NotEct, PgSpec, ProfileSpec, QueueSpec, Service, Xoff, Xon};
use holdfast_core::units::{Alpha, Cells};
use holdfast_plan::import::{import, AssumedMarks, Format, ImportOptions, Imported, PgLookup};
use holdfast_plan::{resolve, ProfilePlan};
use std::path::Path;

fn fixture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/sonic");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

fn imported(name: &str, options: &ImportOptions) -> Imported {
    let text = fixture(name);
    assert_eq!(Format::guess(&text), Some(Format::Sonic));
    import(&text, Format::Sonic, options).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn plan(imported: &Imported) -> ProfilePlan {
    assert_eq!(imported.refused, []);
    let plan = resolve(&imported.doc, &imported.facts()).unwrap_or_else(|e| panic!("{e}"));
    plan.profile(1).unwrap_or_else(|error| panic!("{error}"));
    plan
}

fn pg(spec: &ProfileSpec, number: u8) -> PgSpec {
    spec.ports[0].pgs[PgId::new(number).unwrap()]
}

fn queue(spec: &ProfileSpec, number: u8) -> QueueSpec {
    spec.ports[0].queues[QueueId::new(number).unwrap()]
}

fn alpha(log2: i8) -> Limit {
    Limit::Dynamic(Alpha::new(log2).unwrap())
}

/// Pools of a plan as name and cells.
fn pools(spec: &ProfileSpec) -> Vec<(&str, u32)> {
    spec.pools.iter().map(|(name, size)| (name.as_str(), size.0)).collect()
}

/// What all five have from the QoS template.
fn has_the_templates_qos(plan: &ProfilePlan, ports: usize, tc7: u8) {
    let spec = plan.spec();
    assert_eq!(spec.ports.len(), ports);
    for (number, port) in spec.ports.iter().enumerate() {
        let dscp = |dscp: u8| port.maps.dscp_to_cos[Dscp::new(dscp).unwrap()].number();
        assert_eq!([3, 4, 5, 8, 46, 48, 9, 63].map(dscp), [3, 4, 2, 0, 5, 6, 1, 1]);
        let to_pg = |cos: u8| port.maps.cos_to_pg[Cos::new(cos).unwrap()].number();
        assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(to_pg), [0, 0, 0, 3, 4, 0, 0, tc7]);
        let enabled: Vec<u8> = port.pfc.enabled.iter().map(Priority::number).collect();
        assert_eq!(enabled, [3, 4]);
        let lossless = port.pgs.iter().filter(|(_, pg)| pg.lossless);
        assert_eq!(lossless.map(|(id, _)| id.number()).collect::<Vec<_>>(), [3, 4]);
        let service = |n: u8| port.queues[QueueId::new(n).unwrap()].service;
        assert_eq!(service(0), Service::Weight(14));
        assert_eq!(service(3), Service::Weight(15));
        assert_eq!(service(7), Service::Strict);
        let watchdog = plan.spec().ports[number].watchdog.unwrap();
        assert_eq!(
            (watchdog.detection_time.0, watchdog.restoration_time.0),
            (200_000_000, 200_000_000)
        );
    }
}

#[test]
fn broadcom_headroom_is_a_cap_on_the_shared_pool() {
    let imported = imported("broadcom_th.json", &ImportOptions::new("th"));
    let plan = plan(&imported);
    has_the_templates_qos(&plan, 4, 7);
    let spec = plan.spec();
    // 10875072 / 256 = 42480.75, 4194112 / 256 = 16383.25: sizes round up.
    assert_eq!(pools(spec), [("ingress_lossless_pool", 42_481)]);
    assert_eq!(spec.headroom_pool, Cells(16_384));
    assert_eq!(spec.egress_shared, Cells(36_109)); // 9243812 / 256
    let pg3 = pg(spec, 3);
    assert!(pg3.headroom_pool);
    assert_eq!(pg3.headroom, Cells(694)); // 177632 / 256 = 693.875
    assert_eq!((pg3.xoff, pg3.limit), (Xoff::AtLimit, alpha(0)));
    // 2288 B are 9 cells; 1248 B are 5, and one frame of 9100 + 26 B is 36.
    assert_eq!((pg3.xon, pg3.xon_floor), (Xon::Offset(Cells(9)), Cells(9)));
    assert_eq!(pg3.guaranteed, Cells(36));
    assert_eq!((pg(spec, 0).limit, pg(spec, 0).headroom), (alpha(3), Cells(0)));
    let line = queue(spec, 3).wred.unwrap();
    assert_eq!((line.kmin, line.kmax), (Cells(977), Cells(8_192))); // 250000, 2097152 B
    assert_eq!((line.pmax.units(), line.not_ect), (3_277, NotEct::Pass)); // 5 %
    assert_eq!((queue(spec, 0).limit, queue(spec, 0).guarantee), (Some(alpha(3)), Cells(6)));
    let said = |at: &str| imported.notes.iter().any(|note| note.read.ends_with(at));
    for at in ["pool|xoff", "profile|xoff", "profile|xon", "profile|size", "yellow_min_threshold"] {
        assert!(said(at), "{at}: {:#?}", imported.notes);
    }
    assert!(imported.doc.ports.is_empty(), "equal ports need no sections of their own");
}

#[test]
fn teralynx_pgs_draw_from_a_pool_of_type_egress() {
    let imported = imported("marvell_teralynx.json", &ImportOptions::new("tl10"));
    let plan = plan(&imported);
    has_the_templates_qos(&plan, 8, 0);
    let spec = plan.spec();
    // 158630302 / 256 = 619649.6, 56012386 / 256 = 218798.4.
    assert_eq!(pools(spec), [("ingress_lossless_pool", 619_650), ("lossy_pool", 218_799)]);
    assert_eq!(spec.headroom_pool, Cells(279_600)); // 71577600 / 256
    assert_eq!(spec.egress_shared, Cells(218_799));
    let pg3 = pg(spec, 3);
    assert_eq!((pg3.headroom, pg3.limit), (Cells(530), alpha(1))); // 135520 / 256 = 529.4
    assert_eq!((pg3.xon, pg3.xon_floor), (Xon::Offset(Cells(37)), Cells(0))); // 9408 / 256 = 36.75
    let pg0 = pg(spec, 0);
    assert_eq!((pg0.pool.index(), pg0.limit), (1, Limit::Static(Cells(89_056)))); // 22798336 B
    assert_eq!(queue(spec, 0).limit, Some(alpha(2)));
}

#[test]
fn nvidia_pgs_come_from_the_table_with_the_headroom_in_their_size() {
    let table = PgLookup::parse(&fixture("nvidia_msn2700_pg_profile_lookup.ini")).unwrap();
    let options = ImportOptions { lookup: Some(table), ..ImportOptions::new("msn2700") };
    let plan = plan(&imported("nvidia_msn2700.json", &options));
    has_the_templates_qos(&plan, 4, 7);
    let spec = plan.spec();
    assert_eq!(
        pools(spec),
        [("ingress_lossless_pool", 12_902), ("ingress_lossy_pool", 12_902)] // 3302912 / 256
    );
    let pg3 = pg(spec, 3);
    // 100G 5m: size 50176 = xon 19456 + xoff 30720.
    assert_eq!((pg3.guaranteed, pg3.headroom), (Cells(76), Cells(120)));
    assert_eq!((pg3.xon, pg3.limit), (Xon::Absolute(Cells(76)), alpha(0)));
    assert!(!pg3.headroom_pool);
    assert_eq!((pg(spec, 0).pool.index(), pg(spec, 0).limit), (1, alpha(3)));
    // Without the table no PG can be lossless: each port says so, none is by chance.
    let without = imported("nvidia_msn2700.json", &ImportOptions::new("msn2700"));
    assert_eq!(without.refused.len(), 8, "{:#?}", without.refused);
    assert!(without.doc.pgs.values().all(|pg| pg.lossless == Some(false)));
    assert_eq!(without.doc.pfc.enabled.as_deref(), Some(&[][..]));
}

#[test]
fn marvell_prestera_needs_its_headroom_given() {
    for (name, lossless) in [("marvell_98dx35xx.json", 5_653), ("marvell_98dx45xx.json", 23_438)] {
        let without = imported(name, &ImportOptions::new("ac5"));
        assert_eq!(without.refused.len(), 8);
        assert!(without.refused[0].message.contains("nothing gives it headroom"));
        let assumed = Some(AssumedMarks { headroom: Cells(768), xon: Cells(512) });
        let options = ImportOptions { assumed, ..ImportOptions::new("ac5") };
        let plan = plan(&imported(name, &options));
        has_the_templates_qos(&plan, 4, 7);
        let spec = plan.spec();
        // 1447040 / 256 = 5652.5, 6000000 / 256 = 23437.5, 1000000 / 256 = 3906.25.
        assert_eq!(pools(spec), [("ingress_pool1", lossless), ("ingress_pool2", 3_907)]);
        let pg3 = pg(spec, 3);
        assert_eq!((pg3.headroom, pg3.xon), (Cells(768), Xon::Offset(Cells(512))));
        assert_eq!((pg3.xoff, pg3.limit, pg3.pool.index()), (Xoff::AtLimit, alpha(-3), 0));
        assert_eq!(queue(spec, 3).wred.unwrap().kmin, Cells(4_096)); // 1048576 / 256
        assert_eq!(queue(spec, 0).limit, Some(alpha(1)));
    }
}
