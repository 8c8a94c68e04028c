use super::*;
use crate::{resolve, PortFacts, SwitchFacts};
use holdfast_api::doc::Source;
use holdfast_api::message::{ErrorBody, ErrorCode};
use holdfast_api::profile_doc::ProfileDoc;
use holdfast_core::units::BitRate;

const LAB: &str = "name = \"p\"\n[[pool]]\nname = \"lossless\"\nsize = 16384\n[[pool]]\n\
                   name = \"lossy\"\nsize = 4096\n[pg.3]\nheadroom = 3072\nxoff = 4096\n\
                   xon = 1024\n[queue.3.wred]\nkmin = 256\nkmax = 1536\n";

fn facts() -> SwitchFacts {
    let port = |name: &str| PortFacts {
        name: name.to_owned(),
        speed: BitRate::gigabits(10),
        mtu: 1500,
        trust: None,
        link_pause: false,
    };
    SwitchFacts {
        ports: vec![port("h1"), port("h2")],
        flood_limit: 64,
        rx_ring: 2048,
        spare_ports: 0,
    }
}

fn running() -> (ProfileSpec, Vec<String>) {
    let facts = facts();
    let doc = ProfileDoc::load(&Source::new("p", LAB)).unwrap();
    (resolve(&doc, &facts).unwrap().spec().clone(), facts.names())
}

fn pg(patch: &SetPg) -> Result<Edit, PlanError> {
    let (spec, names) = running();
    set_pg(&spec, &names, &[], patch)
}

fn wred(patch: &SetWred) -> Result<Edit, PlanError> {
    let (spec, names) = running();
    set_wred(&spec, &names, patch)
}

fn cells(n: u32) -> Option<CellAmount> {
    Some(CellAmount::Cells(n))
}

fn at(n: u32) -> Option<XoffAmount> {
    Some(XoffAmount::At(CellAmount::Cells(n)))
}

fn pg3() -> SetPg {
    SetPg { pg: 3, ..SetPg::default() }
}

#[test]
fn one_ports_xoff_changes_and_nothing_else() {
    let edit = pg(&SetPg { port: Some("h1".into()), xoff: at(5000), ..pg3() }).unwrap();
    assert_eq!(edit.changed, ["h1 pg 3 xoff: 4096 -> 5000"]);
    let (mut before, _) = running();
    before.ports[0].pgs[PgId::new(3).unwrap()].xoff = Xoff::At(Cells(5000));
    assert_eq!(edit.spec, before);
    assert_eq!(edit.profile(7).unwrap().generation(), 7);
}

#[test]
fn without_a_port_all_change() {
    let patch = SetPg { xon: cells(512), xon_mode: Some(XonModeDoc::Offset), ..pg3() };
    assert_eq!(pg(&patch).unwrap().changed.len(), 2);
    let percent = SetPg { xoff: Some(XoffAmount::At(CellAmount::BasisPoints(6_000))), ..pg3() };
    assert_eq!(pg(&percent).unwrap().changed[1], "h2 pg 3 xoff: 4096 -> 4915");
}

#[test]
fn relations_hold_for_live_changes_too() {
    let body = |patch: SetPg| ErrorBody::from(pg(&patch).unwrap_err());
    let error = body(SetPg { port: Some("h2".into()), xoff: at(9000), ..pg3() });
    assert_eq!(error.code, ErrorCode::Refused);
    assert_eq!(error.place.as_deref(), Some("port.h2.pg.3.xoff"));
    assert_eq!(
        (error.value.as_deref(), error.limit.as_deref()),
        (Some("9000"), Some("below 8192"))
    );
    let error = body(SetPg { xon: cells(3000), ..pg3() });
    assert_eq!(error.place.as_deref(), Some("port.h1.queue.3.wred.kmax"));
    let error = body(SetPg { limit: cells(9), alpha: Some(1), ..pg3() });
    assert_eq!(error.place.as_deref(), Some("port.h1.pg.3.limit"));
    assert_eq!(body(pg3()).place.as_deref(), Some("call"));
    assert_eq!(body(SetPg { pg: 8, xoff: at(1), ..pg3() }).place.as_deref(), Some("pg"));
    let unknown = body(SetPg { port: Some("h9".into()), xoff: at(1), ..pg3() });
    assert_eq!(unknown.code, ErrorCode::UnknownPort);
    assert!(unknown.fix.is_some_and(|fix| fix.ends_with("h1, h2")));
}

#[test]
fn lossy_pgs_have_limits_but_no_xoff() {
    let lossy = |patch: SetPg| SetPg { pg: 0, ..patch };
    assert!(pg(&lossy(SetPg { alpha: Some(1), ..pg3() })).is_err(), "a port must be named");
    let named = SetPg { port: Some("h1".into()), ..pg3() };
    let edit = pg(&lossy(SetPg { alpha: Some(1), ..named.clone() })).unwrap();
    assert_eq!(edit.changed, ["h1 pg 0 limit: alpha 2^0 -> alpha 2^1"]);
    assert!(pg(&lossy(SetPg { xoff: at(100), ..named })).is_err());
}

#[test]
fn headroom_below_the_formulas_need_is_refused_as_in_a_file() {
    let facts = facts();
    let doc = |headroom: u32| {
        let text = LAB.replace("headroom = 3072", &format!("headroom = {headroom}"))
            + "[pfc]\nrx_backlog_mark = 256\n[formula]\nkind = \"cpu\"\n";
        ProfileDoc::load(&Source::new("p", text)).unwrap()
    };
    let plan = resolve(&doc(3072), &facts).unwrap();
    let set = |headroom| {
        let patch = SetPg { port: Some("h2".into()), headroom: cells(headroom), ..pg3() };
        set_pg(plan.spec(), &facts.names(), plan.headroom_terms(), &patch)
    };
    let refused = ErrorBody::from(set(2_792).unwrap_err());
    assert_eq!(refused.place.as_deref(), Some("port.h2.pg.3.headroom"));
    assert_eq!((refused.value.as_deref(), refused.limit.as_deref()), (Some("2792"), Some("2793")));
    let by_file = ErrorBody::from(resolve(&doc(2_792), &facts).unwrap_err());
    assert_eq!((refused.message, refused.fix), (by_file.message, by_file.fix));
    assert_eq!(set(2_793).unwrap().changed, ["h2 pg 3 headroom: 3072 -> 2793"]);
    let other = SetPg { xoff: at(4000), ..pg3() };
    assert!(set_pg(plan.spec(), &facts.names(), plan.headroom_terms(), &other).is_ok());
}

#[test]
fn headroom_without_room_in_the_total_is_refused_by_the_budget() {
    let body = ErrorBody::from(pg(&SetPg { headroom: cells(4000), ..pg3() }).unwrap_err());
    assert_eq!((body.value.as_deref(), body.limit.as_deref()), (Some("28480"), Some("26624")));
}

#[test]
fn a_marking_line_is_changed_made_and_removed() {
    let queue = |queue| SetWred { port: Some("h2".into()), queue, ..SetWred::default() };
    let edit = wred(&SetWred { kmin: cells(128), ..queue(3) }).unwrap();
    assert_eq!(edit.changed.len(), 1);
    let line = edit.spec.ports[1].queues[QueueId::new(3).unwrap()].wred.unwrap();
    assert_eq!((line.kmin, line.kmax), (Cells(128), Cells(1536)));
    let edit = wred(&SetWred { off: true, ..queue(3) }).unwrap();
    assert!(edit.spec.ports[1].queues[QueueId::new(3).unwrap()].wred.is_none());
    assert!(wred(&SetWred { kmin: cells(10), ..queue(0) }).is_err(), "kmax is needed");
    let made = SetWred { kmin: cells(10), kmax: cells(10), pmax: Some(1.0), ..queue(0) };
    assert!(wred(&made).unwrap().changed[0].starts_with("h2 queue 0 wred: off -> 10/10/1.0000"));
    assert!(wred(&SetWred { off: true, kmin: cells(1), ..queue(3) }).is_err());
    assert!(wred(&SetWred { pmax: Some(1.5), ..queue(3) }).is_err());
    assert!(wred(&SetWred { pmax: Some(f64::NAN), ..queue(3) }).is_err());
    assert!(wred(&queue(3)).is_err(), "nothing to change");
    assert!(wred(&SetWred { kmax: cells(3072), ..queue(3) }).is_err(), "above the resume level");
}
