//! What is refused, what is said, and the public faults about imports.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use holdfast_api::amount::CellAmount;
use holdfast_api::profile_doc::{PgDoc, Slot};
use serde_json::{json, Value};

fn slot(number: u8) -> Slot {
    Slot::new(number).unwrap()
}

/// Two ports, one lossless PG each: what the tests change one thing of.
fn small() -> Value {
    json!({
        "PORT": {
            "P1": { "speed": "50000", "mtu": "1500" },
            "P2": { "speed": "50000", "mtu": "1500" },
        },
        "DSCP_TO_TC_MAP": { "M": { "26": "3" } },
        "TC_TO_PRIORITY_GROUP_MAP": { "M": { "3": "3" } },
        "TC_TO_QUEUE_MAP": { "M": { "3": "3" } },
        "PORT_QOS_MAP": { "P1,P2": {
            "dscp_to_tc_map": "M", "tc_to_pg_map": "M", "tc_to_queue_map": "M", "pfc_enable": "3",
        }},
        "BUFFER_POOL": {
            "in": { "type": "ingress", "mode": "dynamic", "size": "4194304" },
            "out": { "type": "egress", "mode": "dynamic", "size": "1048576" },
        },
        "BUFFER_PROFILE": {
            "lossless": {
                "pool": "in", "size": "0", "xoff": "25600", "xon": "512", "xon_offset": "2560",
                "dynamic_th": "0",
            },
            "lossy": { "pool": "in", "size": "0", "dynamic_th": "-1" },
            "tail": { "pool": "out", "size": "0", "dynamic_th": "1" },
        },
        "BUFFER_PG": {
            "P1|3": { "profile": "lossless" }, "P2|3": { "profile": "lossless" },
            "P1,P2|0": { "profile": "lossy" },
        },
        "BUFFER_QUEUE": { "P1,P2|0": { "profile": "tail" } },
        "WRED_PROFILE": { "W": {
            "ecn": "ecn_all", "wred_green_enable": "false", "green_min_threshold": "25600",
            "green_max_threshold": "51200", "green_drop_probability": "20",
        }},
        "SCHEDULER": { "s": { "type": "DWRR", "weight": "10" } },
        "QUEUE": { "P1,P2|3": { "scheduler": "s", "wred_profile": "W" } },
        "PFC_WD": { "P1": { "detection_time": "200", "restoration_time": "200" } },
    })
}

/// `small` with the value at a JSON pointer replaced, or removed by null.
fn with(pointer: &str, value: Value) -> Value {
    let mut db = small();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let key = key.replace("~1", "/");
    let parent = db.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    match value {
        Value::Null => parent.remove(&key),
        value => parent.insert(key, value),
    };
    db
}

fn read(db: &Value) -> Result<Imported, Finding> {
    import(&db.to_string(), Format::Sonic, &ImportOptions::new("t"))
}

fn good(db: &Value) -> Imported {
    let imported = read(db).unwrap_or_else(|error| panic!("{error}"));
    let plan = crate::resolve(&imported.doc, &imported.facts());
    plan.unwrap_or_else(|error| panic!("{error}")).profile(1).unwrap();
    imported
}

fn said(imported: &Imported, at: &str) -> bool {
    imported.notes.iter().any(|note| note.read.contains(at))
}

#[test]
fn a_small_file_is_read_whole() {
    let imported = good(&small());
    let pg = &imported.doc.pgs[&slot(3)];
    assert_eq!(pg.headroom, Some(CellAmount::Cells(100)));
    assert_eq!(pg.xon, Some(CellAmount::Cells(10)));
    assert_eq!(pg.xon_floor, Some(CellAmount::Cells(2)));
    assert_eq!(imported.doc.ports.keys().collect::<Vec<_>>(), ["P2"], "it has no watchdog");
    assert_eq!(imported.refused, []);
    // The port that differs does so in this alone.
    assert_eq!(imported.doc.ports["P2"].watchdog.unwrap().enabled, Some(false));
    assert!(imported.doc.ports["P2"].pgs.is_empty());
}

#[test]
fn what_cannot_be_expressed_is_named_by_table_key_and_field() {
    let wrong: [(&str, Value, &str, &str); 33] = [
        ("/BUFFER_PROFILE/lossless/pool", json!("no"), "BUFFER_PROFILE", "has no \"no\""),
        ("/BUFFER_PROFILE/lossless/dynamic_th", json!("8"), "|lossless|dynamic_th", "range"),
        ("/BUFFER_PROFILE/lossless/dynamic_th", Value::Null, "|lossless|dynamic_th", "missing"),
        ("/BUFFER_PROFILE/lossless/static_th", json!("1"), "|lossless|static_th", "exclude"),
        ("/BUFFER_PROFILE/lossless/size", Value::Null, "|lossless|size", "missing"),
        ("/BUFFER_PROFILE/lossless/xoff", json!("-1"), "|lossless|xoff", "range"),
        ("/BUFFER_PROFILE/lossless/xoff", json!("0"), "|lossless|xoff", "no headroom"),
        ("/BUFFER_PROFILE/lossless/trim", json!("1"), "|lossless|trim", "can't be expressed"),
        ("/BUFFER_PROFILE/lossy/packet_discard_action", json!("trim"), "|lossy|packet", "drop"),
        ("/BUFFER_PG/P3|3", json!({"profile": "lossless"}), "BUFFER_PG|P3|3", "no port \"P3\""),
        ("/BUFFER_PG/P1|8", json!({"profile": "lossless"}), "BUFFER_PG|P1|8", "list of numbers"),
        ("/BUFFER_PG/P1", json!({"profile": "lossless"}), "BUFFER_PG|P1", "PORT|NUMBERS"),
        ("/BUFFER_PG/P1|2-3", json!({"profile": "lossless"}), "BUFFER_PG|P1|", "is bound by"),
        ("/BUFFER_PG/P1|1", json!({"profile": "[NO|lossy]"}), "BUFFER_PG|P1|1|profile", "no row"),
        ("/BUFFER_PG/P1|1", json!({"profile": "none"}), "BUFFER_PG|P1|1|profile", "has no"),
        ("/BUFFER_POOL/in/type", json!("inward"), "BUFFER_POOL|in|type", "no type"),
        ("/BUFFER_POOL/in/size", Value::Null, "BUFFER_POOL|in|size", "no size"),
        ("/BUFFER_POOL/in/percentage", json!("50"), "BUFFER_POOL|in|percentage", "share"),
        ("/DSCP_TO_TC_MAP/M/64", json!("1"), "DSCP_TO_TC_MAP|M|64", "range"),
        ("/DSCP_TO_TC_MAP/M/26", json!("8"), "DSCP_TO_TC_MAP|M|26", "range"),
        ("/DSCP_TO_TC_MAP/M/026", json!("3"), "DSCP_TO_TC_MAP|M|", "twice"),
        ("/PORT_QOS_MAP/P1", json!({"pfc_enable": "3"}), "PORT_QOS_MAP|P1", "second row"),
        ("/PORT_QOS_MAP/P1,P2/tc_to_dscp_map", json!("M"), "|tc_to_dscp_map", "can't be"),
        ("/PORT_QOS_MAP/P1,P2/pfc_enable", json!("3,9"), "|pfc_enable", "list of numbers"),
        ("/PORT_QOS_MAP/P1,P2/dscp_to_tc_map", json!("N"), "|dscp_to_tc_map", "has no \"N\""),
        ("/SCHEDULER/s/weight", json!("0"), "SCHEDULER|s|weight", "range"),
        ("/SCHEDULER/s/type", json!("WRR"), "SCHEDULER|s|type", "bytes"),
        ("/SCHEDULER/s/meter_type", json!("packets"), "SCHEDULER|s|meter_type", "bytes"),
        ("/WRED_PROFILE/W/green_min_threshold", Value::Null, "|green_min_threshold", "missing"),
        ("/WRED_PROFILE/W/green_drop_probability", json!("101"), "|green_drop", "range"),
        ("/WRED_PROFILE/W/ecn", json!("ecn_blue"), "WRED_PROFILE|W|ecn", "no mode"),
        ("/PORT/P1/pfc_asym", json!("on"), "PORT|P1|pfc_asym", "asymmetric"),
        ("/PORT/P1/speed", json!("fast"), "PORT|P1|speed", "range"),
    ];
    for (pointer, value, key, message) in wrong {
        let error = read(&with(pointer, value.clone()));
        let Err(error) = error else { panic!("{pointer} = {value} was taken") };
        assert!(error.key.contains(key), "{pointer}: {error}");
        assert!(error.to_string().contains(message), "{pointer}: {error}");
        assert!(!error.fix.is_empty(), "{pointer}: {error}");
    }
}

#[test]
fn json_that_is_none_or_names_a_key_twice_is_refused_with_its_line() {
    let read = |text: &str| import(text, Format::Sonic, &ImportOptions::new("t")).unwrap_err();
    assert_eq!(read("{\n\"PORT\": {\n\"P1\": {},\n\"P1\": {}\n}}").key, "line 4");
    assert!(read("{\"PORT\": {\"P1\": {}, \"P1\": {}}}").message.contains("\"P1\" is there twice"));
    assert_eq!(read("{\n\"PORT\": ").key, "line 2");
    assert_eq!(read("[]").key, "line 1");
    assert_eq!(read("{\"PORT\": 3}").key, "PORT");
    assert_eq!(read("{\"PORT\": {\"P1\": 3}}").key, "PORT|P1");
    assert_eq!(read("{\"PORT\": {\"P1\": {\"mtu\": {}}}}").key, "PORT|P1|mtu");
    assert_eq!(read("{}").key, "CONFIG_DB");
    let deep = format!("{{\"PORT\": {}", "[".repeat(100_000));
    assert!(read(&deep).message.contains("recursion"), "{}", read(&deep));
    assert!(read(&" ".repeat(MAX_INPUT + 1)).limit.is_some());
}

#[test]
fn legacy_references_and_json_numbers_mean_the_same() {
    let mut db = small();
    db["BUFFER_PROFILE"]["lossless"]["pool"] = json!("[BUFFER_POOL|in]");
    db["BUFFER_PROFILE"]["lossless"]["xoff"] = json!(25_600);
    db["BUFFER_PG"]["P1|3"]["profile"] = json!("[BUFFER_PROFILE|lossless]");
    db["QUEUE"]["P1,P2|3"]["scheduler"] = json!("[SCHEDULER|s]");
    db["PORT_QOS_MAP"]["P1,P2"]["dscp_to_tc_map"] = json!("[DSCP_TO_TC_MAP|M]");
    db["PORT_QOS_MAP"]["P1,P2"]["pfc_enable"] = json!([3]);
    assert_eq!(good(&db).doc, good(&small()).doc);
}

#[test]
fn ranges_lists_and_single_keys_mean_the_same() {
    let mut db = small();
    let profile = json!({ "profile": "lossy" });
    db["BUFFER_PG"] = json!({ "P1|0-2": profile, "P2|0,1,2": profile,
        "P1,P2|3": { "profile": "lossless" } });
    let listed = good(&db).doc;
    let lossless = json!({ "profile": "lossless" });
    db["BUFFER_PG"] = json!({ "P1,P2|0": profile, "P1,P2|1": profile, "P1|2": profile,
        "P2|2": profile, "P1|3": lossless, "P2|3": lossless });
    assert_eq!(listed, good(&db).doc);
}

/// Fault S7: PCP obeyed without a map, an unmapped DSCP in the highest queue, PCP 1 above 0.
#[test]
fn what_no_map_names_is_class_0() {
    let imported = good(&small());
    let plan = crate::resolve(&imported.doc, &imported.facts()).unwrap();
    for port in &plan.spec().ports {
        for (dscp, cos) in port.maps.dscp_to_cos.iter() {
            let expected = if dscp.number() == 26 { 3 } else { 0 };
            assert_eq!(cos.number(), expected, "DSCP {}", dscp.number());
        }
        assert!(port.maps.pcp_to_cos.iter().all(|(_, cos)| cos.number() == 0));
        for (cos, queue) in port.maps.cos_to_queue.iter() {
            assert_eq!(queue.number(), if cos.number() == 3 { 3 } else { 0 });
        }
    }
    assert!(said(&imported, "DSCP_TO_TC_MAP|M"));
    assert!(imported.notes.iter().any(|note| note.became.contains("no dot1p_to_tc_map")));
    // Without any map the port believes nothing; with one for PCP only it believes that.
    for (map, trust) in [(None, "port"), (Some("dot1p_to_tc_map"), "pcp")] {
        let mut db = small();
        db["DOT1P_TO_TC_MAP"] = json!({ "M": { "3": "3" } });
        let row = db["PORT_QOS_MAP"]["P1,P2"].as_object_mut().unwrap();
        row.remove("dscp_to_tc_map");
        row.extend(map.map(|map| (map.to_owned(), json!("M"))));
        let doc = good(&db).doc;
        assert_eq!(serde_json::to_value(doc.maps.trust).unwrap(), trust);
    }
}

/// Fault S12: a poll interval above the detection time was accepted in one order of commands. A
/// file has no order: whichever row comes first, it is refused.
#[test]
fn watchdog_times_below_the_poll_interval_are_refused() {
    let row = |detection: u32, restoration: u32, poll: u32| {
        json!({
            "P1": {
                "detection_time": detection.to_string(),
                "restoration_time": restoration.to_string(),
            },
            "GLOBAL": { "POLL_INTERVAL": poll.to_string() },
        })
    };
    good(&with("/PFC_WD", row(200, 200, 200)));
    let times = [
        (row(200, 400, 201), "P1|detection_time"),
        (row(400, 200, 201), "P1|restoration_time"),
        (row(100, 1_000, 1_000), "P1|detection_time"),
        (row(99, 200, 100), "P1|detection_time"),
        (row(5_001, 200, 100), "P1|detection_time"),
        (row(200, 60_001, 100), "P1|restoration_time"),
        (row(200, 200, 99), "GLOBAL|POLL_INTERVAL"),
        (row(2_000, 2_000, 1_001), "GLOBAL|POLL_INTERVAL"),
    ];
    for (watchdog, key) in times {
        let error = read(&with("/PFC_WD", watchdog.clone())).unwrap_err();
        assert!(error.key.ends_with(key), "{watchdog}: {error}");
        assert!(error.value.is_some() && error.limit.is_some(), "{error}");
        // The same text with the rows the other way round.
        let map = watchdog.as_object().unwrap();
        let turned: serde_json::Map<_, _> =
            map.iter().rev().map(|(key, row)| (key.clone(), row.clone())).collect();
        assert_eq!(read(&with("/PFC_WD", Value::Object(turned))).unwrap_err(), error);
    }
    let big = json!({ "GLOBAL": { "BIG_RED_SWITCH": "enable" } });
    assert!(read(&with("/PFC_WD", big)).unwrap_err().key.ends_with("BIG_RED_SWITCH"));
}

/// Fault 13: pool size and headroom pool exceed the memory, and were silently degraded.
#[test]
fn pools_beyond_the_memory_are_refused_with_the_numbers() {
    let text = include_str!("../../../../tests/fixtures/cases/13_pool_overcommit.json");
    let cell = CellSize::new(420).unwrap();
    let options =
        |total| ImportOptions { cell, cells: Some(Cells(total)), ..ImportOptions::new("t") };
    let refused = |text: &str, needed: u32, total: u32| {
        let error = import(text, Format::Sonic, &options(total)).unwrap_err();
        assert_eq!(error.key, "BUFFER_POOL|ingress_lossless_pool");
        assert_eq!(error.value.as_deref(), Some(&*needed.to_string()));
        assert_eq!(error.limit.as_deref(), Some(&*total.to_string()));
    };
    refused(text, 808_546, 636_183);
    // Both readings of the later values are known; ours is that xoff stands beside size.
    let later = text.replacen("258035400", "249964680", 1).replacen("81553920", "120825600", 1);
    refused(&later, 882_834, 636_183);
    // Any total below the sum, to the cell; at the sum it fits.
    refused(text, 808_546, 808_545);
    let imported = import(text, Format::Sonic, &options(808_546)).unwrap();
    assert_eq!(imported.doc.buffer.headroom_pool, Some(CellAmount::Cells(194_176)));
    assert_eq!(imported.doc.pools[0].size, CellAmount::Cells(614_370));
    // A byte more is a cell more.
    let more = text.replacen("258035400", "258035401", 1);
    refused(&more, 808_547, 808_546);
}

/// Fault 20: rows missing from the PG table, a cable of 0 m, a length without its unit.
#[test]
fn each_request_of_the_pg_table_case_is_answered_for_its_port_alone() {
    let table = include_str!("../../../../tests/fixtures/cases/20_pg_lookup_gaps.ini");
    let requests = include_str!("../../../../tests/fixtures/cases/20_pg_lookup_requests.csv");
    let mut db = small();
    db["PORT"] = json!({});
    db["BUFFER_PG"] = json!({});
    db["BUFFER_QUEUE"] = json!({});
    db["QUEUE"] = json!({});
    db["PFC_WD"] = json!({});
    db["CABLE_LENGTH"] = json!({ "AZURE": {} });
    let qos = db["PORT_QOS_MAP"]["P1,P2"].clone();
    db["PORT_QOS_MAP"] = json!({});
    let mut ports = Vec::new();
    for line in requests.lines().skip(1) {
        let [name, admin, speed, cable] = line.splitn(5, ',').collect::<Vec<_>>()[..4] else {
            panic!("{line}")
        };
        db["PORT"][name] = json!({ "speed": speed, "admin_status": admin });
        // "5m then 40m": what is in the file last.
        let cable = cable.rsplit(' ').next().unwrap();
        db["CABLE_LENGTH"]["AZURE"][name] = json!(cable);
        db["PORT_QOS_MAP"][name] = qos.clone();
        ports.push(name.to_owned());
    }
    assert_eq!(ports, ["P1", "P2", "P3", "P4", "P5", "P6"]);
    let lookup = Some(PgLookup::parse(table).unwrap());
    let options = ImportOptions { lookup, ..ImportOptions::new("t") };
    let imported = import(&db.to_string(), Format::Sonic, &options).unwrap();
    let plan = crate::resolve(&imported.doc, &imported.facts()).unwrap();
    plan.profile(1).unwrap();
    for (name, port) in plan.port_names().iter().zip(&plan.spec().ports) {
        let pg = port.pgs[holdfast_core::ids::PgId::new(3).unwrap()];
        assert_eq!(pg.lossless, name == "P1", "{name}");
        // 56160 / 256 = 219.4; 1248 B below one frame.
        assert_eq!(pg.headroom, Cells(if name == "P1" { 220 } else { 0 }), "{name}");
        assert_eq!(port.pfc.enabled.is_empty(), name != "P1", "{name}");
    }
    let refused: Vec<(&str, &str)> =
        imported.refused.iter().map(|f| (f.key.as_str(), f.message.as_str())).collect();
    assert_eq!(
        refused,
        [
            ("CABLE_LENGTH|P2", "the table has no row for 10G and 300m"),
            ("CABLE_LENGTH|P4", "the table has no row for 50G and 40m"),
            ("CABLE_LENGTH|P6", "\"5\" is no length of cable"),
        ]
    );
    assert!(said(&imported, "CABLE_LENGTH|P3") && said(&imported, "PORT|P5|admin_status"));
}

/// The other half of fault 20: PFC on, Headroom 0.
#[test]
fn pfc_without_headroom_and_headroom_without_pfc_make_the_port_lossy_by_name() {
    let lossy = |imported: &Imported, port: &str| {
        let over = imported.doc.ports.get(port).and_then(|port| port.pgs.get(&slot(3)));
        let pg: &PgDoc = over.unwrap_or(&imported.doc.pgs[&slot(3)]);
        pg.lossless == Some(false)
    };
    let without = good(&with("/BUFFER_PG/P2|3", json!({ "profile": "lossy" })));
    assert_eq!(without.refused.len(), 1);
    assert_eq!(without.refused[0].key, "BUFFER_PG|P2|3");
    assert!(lossy(&without, "P2") && !lossy(&without, "P1"));
    let unbound = good(&with("/BUFFER_PG/P2|3", Value::Null));
    assert!(lossy(&unbound, "P2") && !lossy(&unbound, "P1"));
    let dynamic = good(&with("/BUFFER_PG/P2|3", json!({ "profile": "NULL" })));
    assert!(lossy(&dynamic, "P2"), "SONiC's dynamic model would compute it");
    let mut db = small();
    let qos = db["PORT_QOS_MAP"]["P1,P2"].clone();
    db["PORT_QOS_MAP"] = json!({ "P1": qos, "P2": qos });
    db["PORT_QOS_MAP"]["P2"]["pfc_enable"] = json!("");
    let off = good(&db);
    assert_eq!(off.refused.len(), 1);
    assert!(off.refused[0].message.contains("none of its priorities"));
    assert!(lossy(&off, "P2") && !lossy(&off, "P1"));
}

#[test]
fn sizes_below_a_frame_become_a_frame_and_it_is_said() {
    let imported = good(&with("/BUFFER_PROFILE/lossless/size", json!("1")));
    let pg = &imported.doc.pgs[&slot(3)];
    assert_eq!(pg.guaranteed, Some(CellAmount::Cells(6)), "1500 + 26 B in cells of 256");
    assert!(said(&imported, "BUFFER_PROFILE|lossless|size"));
}

#[test]
fn tables_without_a_counterpart_and_others_are_said() {
    let mut db = small();
    db["TC_TO_DSCP_MAP"] = json!({ "M": {} });
    db["DEVICE_METADATA"] = json!({ "localhost": { "list": [{ "a": 1 }, { "b": [] }] } });
    let imported = good(&db);
    assert!(said(&imported, "TC_TO_DSCP_MAP") && said(&imported, "DEVICE_METADATA"));
}

#[test]
fn the_global_row_holds_for_all_ports_and_a_port_wins() {
    let mut db = small();
    let row = db["PORT_QOS_MAP"]["P1,P2"].as_object_mut().unwrap();
    row.remove("dscp_to_tc_map");
    db["PORT_QOS_MAP"]["global"] = json!({ "dscp_to_tc_map": "M" });
    assert_eq!(good(&db).doc, good(&small()).doc);
}

#[test]
fn two_shared_headroom_pools_or_two_lossy_egress_pools_are_refused() {
    let mut db = small();
    db["BUFFER_POOL"]["in"]["xoff"] = json!("256");
    db["BUFFER_POOL"]["in2"] = db["BUFFER_POOL"]["in"].clone();
    assert_eq!(read(&db).unwrap_err().key, "BUFFER_POOL|in2|xoff");
    let mut db = small();
    db["BUFFER_POOL"]["out2"] = db["BUFFER_POOL"]["out"].clone();
    db["BUFFER_PROFILE"]["tail2"] = json!({ "pool": "out2", "size": "0", "dynamic_th": "1" });
    db["BUFFER_QUEUE"]["P1|1"] = json!({ "profile": "tail2" });
    assert_eq!(read(&db).unwrap_err().key, "BUFFER_PROFILE|tail2|pool");
}

#[test]
fn a_port_without_speed_is_said_and_the_others_are_kept() {
    let imported = read(&with("/PORT/P2/speed", Value::Null)).unwrap();
    assert!(said(&imported, "PORT|P2|speed"));
    assert_eq!(imported.ports, [], "a plan needs all of them");
    assert!(imported.doc.ports.contains_key("P2"));
}

#[test]
fn the_largest_texts_are_read_or_refused_in_time() {
    let mut table = String::new();
    for cable in 1..150_000 {
        table.push_str(&format!("1000 {cable}m 1 1 1 1\n"));
    }
    assert!(table.len() < MAX_INPUT);
    PgLookup::parse(&table).unwrap();
    let mut db = small();
    let pool = db["BUFFER_POOL"]["in"].clone();
    for number in 0..40_000 {
        db["BUFFER_POOL"][format!("p{number}")] = pool.clone();
    }
    assert_eq!(read(&db).unwrap_err().key, "BUFFER_POOL");
    let mut db = small();
    for number in 0..100_000 {
        db["PORT"][format!("Q{number}")] = json!({});
    }
    assert_eq!(read(&db).unwrap_err().key, "PORT");
    let names: Vec<String> = (0..200_000).map(|number| format!("Q{number}")).collect();
    let db = with("/PORT", Value::Null);
    let db = db.to_string().replace("P1,P2|0", &format!("{}|0", names.join(",")));
    assert_eq!(import(&db, Format::Sonic, &ImportOptions::new("t")).unwrap_err().key, "PORT");
}

mod lines;
