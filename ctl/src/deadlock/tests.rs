use super::graph::End;
use super::report::{ChainEnd, Report};
use holdfast_api::message::{WaitsHold, WaitsPg, WaitsPort, WaitsQueue, WaitsReply};

/// The address of port `port` of switch `switch`.
fn mac(switch: u8, port: u8) -> String {
    format!("02:00:00:00:{switch:02x}:{port:02x}")
}

/// Switch number n, `sN`, with the ports p1..p4.
fn switch(number: u8) -> WaitsReply {
    let port = |port| WaitsPort { port: format!("p{port}"), mac: mac(number, port) };
    WaitsReply {
        switch: format!("s{number}"),
        pid: u32::from(number),
        now_ns: 9_000,
        ports: (1..=4).map(port).collect(),
        pgs: Vec::new(),
        queues: Vec::new(),
    }
}

/// PG 3 of port `pg` waits for queue 3 of port `queue`, which `by` has paused. Suspected.
fn waits(mut reply: WaitsReply, pg: u8, queue: u8, by: Option<&str>) -> WaitsReply {
    let (pg, queue) = (format!("p{pg}"), format!("p{queue}"));
    let hold = WaitsHold { port: queue.clone(), queue: 3, cells: 40, frames: 10 };
    match reply.pgs.iter_mut().find(|known| known.port == pg) {
        Some(known) => known.waits_for.push(hold),
        None => reply.pgs.push(WaitsPg {
            port: pg,
            pg: 3,
            priorities: vec![3],
            cells: 40,
            paused_ns: 500,
            suspected_at_ns: Some(700),
            waits_for: vec![hold],
        }),
    }
    reply.queues.push(WaitsQueue {
        port: queue,
        queue: 3,
        paused: by.is_some(),
        priorities: vec![3],
        stands_ns: 300,
        detection_ns: 200,
        paused_by: by.map(str::to_owned),
    });
    reply
}

/// Three switches whose ports p1 wait, by p2, for each other in a ring.
fn ring() -> Vec<WaitsReply> {
    let one = |n: u8, next: u8| waits(switch(n), 1, 2, Some(&mac(next, 1)));
    vec![one(1, 2), one(2, 3), one(3, 1)]
}

/// What follows if the switches say the same twice.
fn judged(replies: &[WaitsReply]) -> Report {
    let again: Vec<Option<WaitsReply>> = replies.iter().cloned().map(Some).collect();
    judged_again(replies, &again)
}

fn judged_again(replies: &[WaitsReply], again: &[Option<WaitsReply>]) -> Report {
    Report::new(&replies.iter().collect::<Vec<_>>(), again, Vec::new())
}

fn deadlocks(report: &Report) -> Vec<&str> {
    report.deadlocks.iter().map(|cycle| cycle.text.as_str()).collect()
}

/// The chains as text, without what stands before and after them.
fn chains(report: &Report) -> Vec<String> {
    let text = report.text();
    let lines = text.lines().skip_while(|line| *line != "Waiting:").skip(1);
    lines.take_while(|line| line.starts_with("  ")).map(|line| line.trim().to_owned()).collect()
}

#[test]
fn rings_of_one_two_and_three_switches_are_named() {
    // A cable from port p1 to port p2 of the same switch.
    let own = judged(&[waits(switch(1), 1, 2, Some(&mac(1, 1)))]);
    assert_eq!(deadlocks(&own), ["s1 port p1 pg 3 -> s1 port p1 pg 3"]);
    let two = [waits(switch(1), 1, 1, Some(&mac(2, 1))), waits(switch(2), 1, 1, Some(&mac(1, 1)))];
    let two = judged(&two);
    assert_eq!(deadlocks(&two), ["s1 port p1 pg 3 -> s2 port p1 pg 3 -> s1 port p1 pg 3"]);
    let three = judged(&ring());
    let text = "s1 port p1 pg 3 -> s2 port p1 pg 3 -> s3 port p1 pg 3 -> s1 port p1 pg 3";
    assert_eq!(deadlocks(&three), [text]);
    for report in [own, two, three] {
        assert!(report.chains.is_empty() && report.moving_cycles.is_empty(), "{report:?}");
    }
}

#[test]
fn the_cycle_is_told_with_its_queues() {
    let report = judged(&ring());
    let text = report.text();
    assert!(text.starts_with("Deadlock: s1 port p1 pg 3 -> s2 port p1 pg 3 -> "), "{text}");
    let first = "  s1 port p1 pg 3: 40 of 40 cells in queue 3 of port p2, paused by \
                 02:00:00:00:02:01, stands for 300 ns\n";
    assert!(text.contains(first), "{text}");
    assert!(text.ends_with("3 switches asked: s1, s2, s3; 1 deadlock.\n"), "{text}");
    let json = serde_json::to_value(&report).unwrap();
    let link = &json["deadlocks"][0]["pgs"][1];
    assert_eq!(
        (&link["switch"], &link["port"], &link["pg"]),
        (&"s2".into(), &"p1".into(), &3.into())
    );
    assert_eq!(link["waits_for"]["paused_by"], "02:00:00:00:03:01");
}

#[test]
fn two_cycles_are_two_deadlocks() {
    let mut switches = ring();
    switches.push(waits(switch(4), 1, 2, Some(&mac(5, 1))));
    switches.push(waits(switch(5), 1, 2, Some(&mac(4, 1))));
    let report = judged(&switches);
    assert_eq!(deadlocks(&report).len(), 2);
    assert_eq!(deadlocks(&report)[1], "s4 port p1 pg 3 -> s5 port p1 pg 3 -> s4 port p1 pg 3");
    assert!(report.text().ends_with("; 2 deadlocks.\n"));
}

#[test]
fn a_chain_is_no_cycle_and_its_end_is_told() {
    let host = "02:00:00:00:00:09";
    let pair = [waits(switch(1), 1, 2, Some(&mac(2, 1))), waits(switch(2), 1, 2, Some(host))];
    let report = judged(&pair);
    assert_eq!(deadlocks(&report), Vec::<&str>::new());
    let told = "s1 port p1 pg 3 -> s2 port p1 pg 3 -> queue 3 of port p2, paused by \
                02:00:00:00:00:09: a host, or a switch that wasn't asked";
    assert_eq!(chains(&report), [told]);
    assert!(report.text().ends_with("2 switches asked: s1, s2; no deadlock.\n"));
    let ends = [
        (None, End::NotPaused),
        (Some("00:00:00:00:00:00"), End::NoAddress),
        (Some("02:00:00:00:01:04"), End::NoXoff { switch: "s1".into(), port: "p4".into() }),
    ];
    for (by, end) in ends {
        let report = judged(&[waits(switch(1), 1, 2, by)]);
        assert_eq!(report.chains[0].end, ChainEnd::At(end));
    }
    // All of a PG's frames are in TX rings.
    let mut empty = waits(switch(1), 1, 2, None);
    empty.pgs[0].waits_for.clear();
    assert_eq!(judged(&[empty]).chains[0].end, ChainEnd::At(End::OnTheWay));
    assert!(judged(&[switch(1)]).text().contains("1 switch asked: s1; no PG is in XOFF."));
}

#[test]
fn a_switch_that_is_missing_ends_the_chain() {
    let mut switches = ring();
    switches.remove(1);
    let report = judged(&switches);
    assert_eq!(deadlocks(&report), Vec::<&str>::new());
    assert_eq!(
        chains(&report),
        [format!(
            "s3 port p1 pg 3 -> s1 port p1 pg 3 -> queue 3 of port p2, paused by {}: a host, or a \
             switch that wasn't asked",
            mac(2, 1)
        )]
    );
}

#[test]
fn what_leads_into_a_deadlock_and_out_of_it_is_told_beside_it() {
    let mut switches = ring();
    // h: s1's port p3 waits for p2 as well; and s2's PG has some frames at a host's port, too.
    switches[0] = waits(switches[0].clone(), 3, 2, Some(&mac(2, 1)));
    switches[1] = waits(switches[1].clone(), 1, 4, Some("02:00:00:00:00:09"));
    let report = judged(&switches);
    assert_eq!(deadlocks(&report).len(), 1);
    let [into, out] = &chains(&report)[..] else { panic!("{}", report.text()) };
    assert_eq!(into, "s1 port p3 pg 3 -> s2 port p1 pg 3, in a deadlock");
    assert!(out.starts_with("s2 port p1 pg 3 -> queue 3 of port p4, paused by 02:"), "{out}");
}

#[test]
fn chains_that_meet_are_told_once() {
    // p1 and p3 of s1 wait for s2, which waits for a host.
    let one = waits(switch(1), 1, 2, Some(&mac(2, 1)));
    let switches =
        [waits(one, 3, 2, Some(&mac(2, 1))), waits(switch(2), 1, 2, Some("02:00:00:00:00:09"))];
    let told = chains(&judged(&switches));
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[1], "s1 port p3 pg 3 -> s2 port p1 pg 3, as above");
}

/// A cycle in which one PG isn't suspected still moves; so does one that was suspected anew.
#[test]
fn a_cycle_that_moves_is_no_deadlock() {
    let still = ring();
    let mut moving = ring();
    moving[1].pgs[0].suspected_at_ns = None;
    let report = judged(&moving);
    assert_eq!((report.deadlocks.len(), report.moving_cycles.len()), (0, 1));
    let text = report.text();
    assert!(text.starts_with("Cycle of pauses that still moves, no deadlock: s1 port"), "{text}");
    assert!(text.contains("stands for 300 ns; not all of it stands\n"), "{text}");
    let again = |change: fn(&mut Vec<Option<WaitsReply>>)| {
        let mut again: Vec<_> = still.iter().cloned().map(Some).collect();
        change(&mut again);
        judged_again(&still, &again)
    };
    let anew = again(|again| again[2].as_mut().unwrap().pgs[0].suspected_at_ns = Some(800));
    assert_eq!((anew.deadlocks.len(), anew.moving_cycles.len()), (0, 1));
    let gone = again(|again| again[0] = None);
    assert_eq!((gone.deadlocks.len(), gone.moving_cycles.len()), (0, 1));
    let other = again(|again| again[2].as_mut().unwrap().pgs[0].pg = 4);
    assert_eq!(other.deadlocks.len(), 0);
    assert_eq!(again(|_| {}).deadlocks.len(), 1);
}

/// A longer deadlock beside a shorter cycle that moves isn't missed.
#[test]
fn a_cycle_that_moves_does_not_hide_a_deadlock() {
    let mut switches = ring();
    // s1's p1 waits for s3's p4, too, which waits for s1's p1: two that are not all stuck.
    switches[0] = waits(switches[0].clone(), 1, 3, Some(&mac(3, 4)));
    switches[2] = waits(switches[2].clone(), 4, 3, Some(&mac(1, 1)));
    switches[2].pgs[1].suspected_at_ns = None;
    let report = judged(&switches);
    assert_eq!((report.deadlocks.len(), report.moving_cycles.len()), (1, 1));
    assert_eq!(report.deadlocks[0].pgs.len(), 3);
}

#[test]
fn an_address_that_two_ports_have_is_followed_to_both_in_doubt() {
    let mut switches = ring();
    // A fourth switch has the address of s2's p1; nothing of it is in XOFF: it can't be meant.
    let mut fourth = switch(4);
    fourth.ports[0].mac = mac(2, 1);
    switches.push(fourth.clone());
    let report = judged(&switches);
    assert_eq!(report.deadlocks.len(), 1);
    assert!(!report.text().contains("In doubt"), "{}", report.text());
    // Now it could: it waits for a host.
    switches[3] = waits(fourth, 1, 2, Some("02:00:00:00:00:09"));
    let report = judged(&switches);
    assert_eq!(report.deadlocks.len(), 1);
    assert!(report.text().contains("In doubt: an address in it is that of several ports."));
    assert!(report.chains.iter().any(|chain| chain.pgs.last().unwrap().place.switch == "s4"));
}

#[test]
fn only_the_pgs_of_the_paused_priority_are_waited_for() {
    let mut switches = ring();
    switches[1].pgs[0].priorities = vec![4];
    let report = judged(&switches);
    assert_eq!(report.deadlocks.len(), 0);
    let no_xoff = End::NoXoff { switch: "s2".into(), port: "p1".into() };
    assert!(report.chains.iter().any(|chain| chain.end == ChainEnd::At(no_xoff.clone())));
}

#[test]
fn switches_of_one_name_are_told_apart() {
    let mut switches = ring();
    switches[1].switch = "s1".to_owned();
    let report = judged(&switches);
    let text =
        "s1 (pid 1) port p1 pg 3 -> s1 (pid 2) port p1 pg 3 -> s3 port p1 pg 3 -> s1 (pid 1)";
    assert!(deadlocks(&report)[0].starts_with(text), "{:?}", deadlocks(&report));
}
