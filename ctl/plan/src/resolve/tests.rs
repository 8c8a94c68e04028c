use super::*;
use holdfast_api::doc::{DocError, Source};
use holdfast_core::ids::{Dscp, Pcp, Priority, PrioritySet};
use holdfast_core::profile::{Limit, Service, Trust, Xoff, Xon};
use holdfast_core::units::{Alpha, BitRate};

const LAB: &str = r#"
name = "p"
[[pool]]
name = "lossless"
size = 16384
[[pool]]
name = "lossy"
size = 4096
[pg.3]
headroom = 3072
xoff = 4096
xon = 1024
[queue.3.wred]
kmin = 256
kmax = 1536
"#;

fn facts(link_pause: bool) -> SwitchFacts {
    let port = |name: &str, link_pause| PortFacts {
        name: name.to_owned(),
        speed: BitRate::gigabits(10),
        mtu: 1500,
        trust: None,
        link_pause,
    };
    let ports = vec![port("h1", false), port("h2", link_pause)];
    SwitchFacts { ports, flood_limit: 64, rx_ring: 2048, spare_ports: 0 }
}

fn plan_of(text: &str, facts: &SwitchFacts) -> Result<ProfilePlan, DocError> {
    let source = Source::new("p.toml", text);
    let doc = ProfileDoc::load(&source)?;
    resolve(&doc, facts).map_err(|error| source.locate(error.into()))
}

fn plan(text: &str) -> ProfilePlan {
    plan_of(text, &facts(false)).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str, key: &str) -> DocError {
    let error = plan_of(text, &facts(false)).unwrap_err();
    assert_eq!(error.finding.key, key, "{error}");
    error
}

fn pg3(plan: &ProfilePlan, port: usize) -> PgSpec {
    plan.spec().ports[port].pgs[PgId::new(3).unwrap()]
}

#[test]
fn defaults_are_those_of_ac5p() {
    let plan = plan(LAB);
    let port = &plan.spec().ports[0];
    let cos_of = |dscp| port.maps.dscp_to_cos[Dscp::new(dscp).unwrap()].number();
    assert_eq!([0, 23, 24, 26, 31, 32, 48, 63].map(cos_of), [0, 0, 3, 3, 3, 0, 6, 0]);
    assert!(Pcp::all().all(|pcp| port.maps.pcp_to_cos[pcp].number() == pcp.number()));
    let pg_of: Vec<u8> = port.maps.cos_to_pg.0.iter().map(|pg| pg.number()).collect();
    assert_eq!(pg_of, [0, 0, 0, 3, 0, 0, 0, 0]);
    let queue_of: Vec<u8> = port.maps.cos_to_queue.0.iter().map(|q| q.number()).collect();
    assert_eq!(queue_of, [0, 0, 0, 3, 0, 0, 6, 0]);
    let lossless: Vec<bool> = port.pgs.0.iter().map(|pg| pg.lossless).collect();
    assert_eq!(lossless, [false, false, false, true, false, false, false, false]);
    assert_eq!(port.pfc.enabled, PrioritySet::only(Priority::new(3).unwrap()));
    let service = |queue| port.queues[QueueId::new(queue).unwrap()].service;
    assert_eq!([0, 3, 6].map(service), [Service::Weight(14), Service::Weight(15), Service::Strict]);
    let dynamic = |log2| Alpha::new(log2).map(Limit::Dynamic);
    assert_eq!(port.queues[QueueId::new(0).unwrap()].limit, dynamic(1));
    assert_eq!(port.queues[QueueId::new(3).unwrap()].limit, None);
    assert_eq!(Some(pg3(&plan, 0).limit), dynamic(0));
    assert_eq!(port.tx_inflight, 12_500);
    assert_eq!(port.pfc.rx_backlog_mark, 256);
}

#[test]
fn the_total_is_parts_times_ports_and_pools() {
    let spec = plan(LAB).spec().clone();
    assert_eq!(spec.total, Cells(2 * 3072 + 16_384 + 4_096));
    assert_eq!(spec.egress_shared, spec.total);
    let spare = plan(&format!("{LAB}[buffer]\nspare = 100\n")).spec().clone();
    assert_eq!(spare.total, Cells(spec.total.0 + 100));
    let error = refused(&format!("{LAB}[buffer]\ntotal = 26000\n"), "buffer.total").finding;
    assert_eq!((error.value.as_deref(), error.limit.as_deref()), (Some("26624"), Some("26000")));
}

#[test]
fn percent_is_of_where_one_pg_settles() {
    let plan = plan(&LAB.replace("xoff = 4096", "xoff = \"50%\""));
    assert_eq!(pg3(&plan, 0).xoff, Xoff::At(Cells(4096)));
    let text = LAB.replace("size = 16384", "size = \"50%\"");
    refused(&text, "pool.lossless.size");
}

#[test]
fn a_ports_own_section_wins() {
    let own = "[port.h2]\nmaps.trust = \"pcp\"\npg.3 = { xoff = 5000, limit = 9000 }\n\
               queue.3.wred.off = true\n";
    let plan = plan(&format!("{LAB}{own}"));
    assert_eq!(plan.spec().ports[0].maps.trust, Trust::Dscp);
    assert_eq!(plan.spec().ports[1].maps.trust, Trust::Pcp);
    assert_eq!(pg3(&plan, 0).xoff, Xoff::At(Cells(4096)));
    assert_eq!(pg3(&plan, 1).xoff, Xoff::At(Cells(5000)));
    assert_eq!(pg3(&plan, 1).limit, Limit::Static(Cells(9000)));
    assert_eq!(pg3(&plan, 1).xon, Xon::Offset(Cells(1024)));
    let wred = |port: usize| plan.spec().ports[port].queues[QueueId::new(3).unwrap()].wred;
    assert!(wred(0).is_some() && wred(1).is_none());
    refused(&format!("{LAB}[port.h9.pg.3]\nxoff = 1\n"), "port.h9");
}

#[test]
fn the_azure_and_nvidia_sets() {
    let azure = format!(
        "{LAB}[maps]\nbase = \"azure\"\n[pg.4]\nheadroom = 3072\nxoff = 4096\nxon = 1024\n"
    );
    let plan_azure = plan(&azure);
    let port = &plan_azure.spec().ports[0];
    let cos = |dscp: u8| port.maps.dscp_to_cos[Dscp::new(dscp).unwrap()].number();
    assert_eq!([3, 4, 5, 8, 46, 48, 0].map(cos), [3, 4, 2, 0, 5, 6, 1]);
    assert_eq!(port.pfc.enabled.0, 0b11000);
    let nvidia = plan(&format!("{LAB}[maps]\nbase = \"nvidia\"\n"));
    let maps = &nvidia.spec().ports[0].maps;
    let cos = |dscp: u8| maps.dscp_to_cos[Dscp::new(dscp).unwrap()].number();
    assert_eq!([24, 25, 26, 48].map(cos), [3, 0, 3, 6]);
}

#[test]
fn lossless_pgs_have_no_silent_thresholds() {
    let error = refused(&LAB.replace("headroom = 3072\n", ""), "port.h1.pg.3.headroom");
    assert_eq!(error.line, Some(9), "the section's line");
    refused(&LAB.replace("xon = 1024\n", ""), "port.h1.pg.3.xon");
    refused(&LAB.replace("xoff = 4096\n", ""), "port.h1.pg.3.xoff");
}

#[test]
fn the_order_of_the_watermarks_is_held() {
    let error = refused(&LAB.replace("kmax = 1536", "kmax = 3072"), "port.h1.queue.3.wred.kmax");
    assert_eq!((error.line, error.finding.limit.as_deref()), (Some(15), Some("below 3072")));
    refused(&LAB.replace("kmin = 256", "kmin = 0"), "port.h1.queue.3.wred.kmin");
    refused(&LAB.replace("kmin = 256", "kmin = 1537"), "port.h1.queue.3.wred.kmin");
    refused(&LAB.replace("xon = 1024", "xon = 4096"), "port.h1.pg.3.xon");
    let error = refused(&LAB.replace("xoff = 4096", "xoff = 8192"), "port.h1.pg.3.xoff");
    assert_eq!(error.finding.limit.as_deref(), Some("below 8192"));
    // The last values on the good side of each bound.
    plan(&LAB.replace("kmax = 1536", "kmax = 3071"));
    plan(&LAB.replace("xoff = 4096", "xoff = 8191"));
}

#[test]
fn what_holds_no_frame_is_refused() {
    refused(&LAB.replace("headroom = 3072", "headroom = 0"), "port.h1.pg.3.headroom");
    refused(&LAB.replace("xoff = 4096", "xoff = 4096\nguaranteed = 5"), "port.h1.pg.3.guaranteed");
    plan(&LAB.replace("xoff = 4096", "xoff = 4096\nguaranteed = 6"));
    refused(&format!("{LAB}[pg.0]\nlimit = 1\nalpha = 1\n"), "port.h1.pg.0.limit");
    refused(&format!("{LAB}[pg.0]\nalpha = 8\n"), "port.h1.pg.0.alpha");
}

#[test]
fn pfc_and_lossless_must_agree() {
    refused(&format!("{LAB}[pfc]\nenabled = []\n"), "port.h1.pg.3.priorities");
    refused(&format!("{LAB}[pfc]\nenabled = [3, 4]\n"), "port.h1.pfc.enabled");
    let two = format!("{LAB}[maps]\ncos_to_pg = {{ 4 = 3 }}\n");
    assert_eq!(plan(&two).spec().ports[0].pfc.enabled.0, 0b11000);
    refused(&two.replace("xon = 1024", "xon = 1024\npriorities = [3]"), "port.h1.pg.3.priorities");
    let error = plan_of(LAB, &facts(true)).unwrap_err();
    assert_eq!(error.finding.key, "port.h2.pg.3.priorities");
    let lossy = format!("{LAB}[port.h2.pg.3]\nlossless = false\nheadroom = 0\npool = \"lossy\"\n");
    assert!(plan_of(&lossy, &facts(true)).is_ok());
}

#[test]
fn ranges_of_pfc_pacing_and_watchdog() {
    refused(&format!("{LAB}[pfc]\npause_quanta = 0\n"), "port.h1.pfc.pause_quanta");
    refused(&format!("{LAB}[pfc]\nrx_backlog_mark = 1536\n"), "port.h1.pfc.rx_backlog_mark");
    refused(&format!("{LAB}[scheduler]\ntx_inflight = 3051\n"), "port.h1.scheduler.tx_inflight");
    refused(&format!("{LAB}[scheduler]\ncatch_up = \"1s\"\n"), "port.h1.scheduler.catch_up");
    let short = format!("{LAB}[watchdog]\ndetection_time = \"999us\"\n");
    refused(&short, "port.h1.watchdog.detection_time");
    let plan = plan(&format!("{LAB}[watchdog]\n[port.h2.watchdog]\nenabled = false\n"));
    let ports = &plan.spec().ports;
    assert!(ports[0].watchdog.is_some() && ports[1].watchdog.is_none());
}

#[test]
fn headroom_below_its_formula_is_refused_and_near_it_noted() {
    let formula = "[formula]\nkind = \"cpu\"\n";
    let at = |headroom: u32| {
        let text = LAB.replace("headroom = 3072", &format!("headroom = {headroom}"));
        plan_of(&format!("{text}{formula}"), &facts(false))
    };
    assert_eq!(at(2792).unwrap_err().finding.limit.as_deref(), Some("2793"));
    assert_eq!(at(2793).unwrap().notes().len(), 2);
    assert!(at(3072).unwrap().notes().is_empty());
    refused(&format!("{LAB}[formula]\nkind = \"exact\"\n"), "formula.t_loop");
    let cable = plan(&format!("{LAB}[formula]\nkind = \"ac5p\"\ncable = \"100m\"\n"));
    // 1 us at 10G is 1250 bytes; two frames of 1500 and 64 bytes: 4314 bytes.
    assert_eq!(cable.headroom_terms()[0].need, Cells(17));
}

/// 10G, 40 m, MTU 1500, cells of 256 bytes, worked out by hand:
///     mlx5   (301 + 86) x 40 + 4,080 = 19,560 B                        77 cells
///     ieee   4,000 + 34,304 + 2 x 12,160 + 672 bit times = 7,912 B     31
///     sonic  (1,500 + 505.05 + 819.2 + 4,288) x 4 + 1,024 -> 29 KiB   116; without small packets
///            x 1 -> 8 KiB                                              32
/// and as frames of 1086 B, 1110 on the wire, five cells each, one more that has begun:
///     19,560 B: 18 + 1, 95 cells; 7,912 and 8,192 B: 8 + 1, 45 cells.
#[test]
fn headroom_is_held_to_the_fields_formulas() {
    let with = |headroom: u32, formula: &str| {
        let text = LAB.replace("headroom = 3072", &format!("headroom = {headroom}"));
        format!("{text}[formula]\ncable = \"40m\"\n{formula}\n")
    };
    for (formula, need, smallest) in [
        ("kind = \"mlx5\"", 77, 95),
        ("kind = \"ieee\"", 31, 45),
        ("kind = \"sonic\"", 116, 45),
        ("kind = \"sonic\"\nsmall_share = \"0%\"", 32, 45),
    ] {
        let term = plan(&with(need, formula)).headroom_terms()[0].clone();
        assert_eq!((term.need, term.smallest_need), (Cells(need), Cells(smallest)), "{formula}");
        let error = refused(&with(need - 1, formula), "port.h1.pg.3.headroom");
        assert_eq!(error.finding.limit, Some(need.to_string()), "{error}");
        assert!(error.finding.message.contains("cable"), "each term is named: {error}");
    }
    // Each of their own keys counts.
    let need = |formula: &str| plan(&with(3_072, formula)).headroom_terms()[0].need.0;
    assert!(need("kind = \"ieee\"\ninterface_delay = \"500ns\"") > 31);
    assert!(need("kind = \"sonic\"\nlossless_mtu = 9000") > 116);
    assert!(need("kind = \"sonic\"\ngearbox = \"1KiB\"") > 116);
    for kind in ["ieee", "sonic", "mlx5"] {
        let error = refused(&format!("{LAB}[formula]\nkind = \"{kind}\"\n"), "formula.cable");
        assert!(error.finding.message.contains("needs the cable"), "{error}");
    }
    let mut odd = facts(false);
    odd.ports.iter_mut().for_each(|port| port.speed = BitRate::gigabits(300));
    let error = plan_of(&with(3_072, "kind = \"sonic\""), &odd).unwrap_err();
    assert_eq!(error.finding.key, "formula.kind", "{error}");
    assert_eq!(error.finding.value.as_deref(), Some("300G"), "{error}");
}

#[test]
fn a_dscp_named_twice_is_refused() {
    let text = format!("{LAB}[maps]\ndscp_to_cos = {{ \"24..31\" = 3, 26 = 0 }}\n");
    let error = refused(&text, "maps.dscp_to_cos.26");
    assert_eq!(error.line, Some(17));
}

#[test]
fn an_xoff_without_room_for_xon_is_named_itself() {
    for xoff in [0, 1] {
        let error =
            refused(&LAB.replace("xoff = 4096", &format!("xoff = {xoff}")), "port.h1.pg.3.xoff");
        assert_eq!(error.finding.limit.as_deref(), Some("at least 2"), "{error}");
    }
    let error = refused(&LAB.replace("xon = 1024", "xon = 4096"), "port.h1.pg.3.xon");
    assert_eq!(error.finding.limit.as_deref(), Some("1..4095"));
}

/// Each spare port has as much as the port that has most; a place without a port has nothing.
#[test]
fn spare_ports_have_parts_and_vacant_places_have_none() {
    let text = format!("{LAB}[port.h2.pg.3]\nheadroom = 4000\n[queue.3]\nguarantee = 10\n");
    let text = text.replace("[queue.3.wred]", "[queue.2.wred]");
    let before = plan(&text);
    let mut more = facts(false);
    more.spare_ports = 2;
    more.ports.push(PortFacts::vacant());
    let spare = plan_of(&text, &more).unwrap();
    let part = pg3(&before, 1).headroom.0 + pg3(&before, 1).guaranteed.0;
    assert_eq!(spare.spec().total.0, before.spec().total.0 + 2 * part);
    assert_eq!(spare.spec().ports[2], PortSpec::vacant());
    let (ingress, _) = budget(spare.spec());
    assert_eq!(ingress.left_over, 2 * part, "what is left is what they get");
    assert!(spare.headroom_terms().iter().all(|term| !term.port.is_empty()));
    // With ports in both places it is used up.
    more.ports = ["h1", "h2", "h3", "h4"]
        .map(|name| PortFacts { name: name.to_owned(), ..facts(false).ports[0].clone() })
        .to_vec();
    more.spare_ports = 0;
    let total = format!("{text}[buffer]\ntotal = {}\n", spare.spec().total.0);
    assert!(plan_of(&total, &more).is_ok());
}
