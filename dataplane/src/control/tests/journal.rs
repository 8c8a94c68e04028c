//! The journal over the control socket: what is in it, by whom, and that no worker is asked.

use super::*;
use holdfast_core::ids::PortId;
use std::sync::atomic::Ordering;

fn events(client: &mut Client, since: Option<u64>) -> EventsReply {
    client.call(Call::Events(Events { since, ..Events::default() })).unwrap()
}

/// What happened since the cursor, and the next one.
fn since(client: &mut Client, cursor: u64) -> (Vec<Occurrence>, u64) {
    let reply = events(client, Some(cursor));
    (reply.entries.into_iter().map(|entry| entry.what).collect(), reply.next)
}

fn set_xoff(xoff: u32) -> Call {
    let xoff = Some(XoffAmount::At(CellAmount::Cells(xoff)));
    Call::SetPg(SetPg { pg: LOSSLESS, xoff, ..SetPg::default() })
}

#[test]
fn the_start_and_the_last_good_profile_are_in_the_journal() {
    let desk = Desk::new(2, 3);
    let reply = events(&mut desk.client(), None);
    let (first, second) = (&reply.entries[0], &reply.entries[1]);
    assert!(matches!(&first.what, Occurrence::Started { ports: 3, workers: 2, .. }), "{first:?}");
    assert_eq!((first.seq, first.severity), (1, Severity::Info));
    assert!(first.time_ns > 0 && first.wall_time.ends_with('Z'), "{first:?}");
    assert_eq!((second.severity, second.text.as_str()), (Severity::Warn, "it was kept"));
    assert_eq!((reply.entries.len(), reply.next, reply.lost), (2, 3, 0));
}

#[test]
fn each_change_is_an_entry_with_who_made_it() {
    let desk = Desk::new(1, 2);
    let client = &mut desk.client();
    let cursor = events(client, None).next;
    let mac = "02:00:00:00:00:77".to_owned();
    let entry = FdbAdd { mac: mac.clone(), vlan: None, port: "p1".to_owned() };
    for call in [
        Call::PortHold(port_name("p0")),
        Call::PortRelease(port_name("p0")),
        Call::FdbAdd(entry),
        Call::FdbDel(FdbDel { mac: mac.clone(), vlan: None }),
        Call::WatermarkClear(WatermarkFilter { pg: Some(3), ..WatermarkFilter::default() }),
    ] {
        let _: Done = client.call(call).unwrap();
    }
    let _: SetReply = client.call(set_xoff(900)).unwrap();
    let error = refused(client.call::<SetReply>(set_xoff(1_000_000)));
    let (seen, next) = since(client, cursor);
    let Some(Occurrence::PortHeld { by, port }) = seen.first() else { panic!("{seen:?}") };
    assert_eq!((by.pid as u32, port.as_str()), (std::process::id(), "p0"));
    let by = *by;
    let first = Some("p0 pg 3 xoff: 1000 -> 900".to_owned());
    let expected = [
        Occurrence::PortHeld { by, port: "p0".to_owned() },
        Occurrence::PortReleased { by, port: "p0".to_owned() },
        Occurrence::FdbAdded { by, mac: mac.clone(), vlan: None, port: "p1".to_owned() },
        Occurrence::FdbRemoved { by, mac, vlan: None },
        Occurrence::WatermarksCleared { by, port: None, pg: Some(3), queue: None, pool: None },
        Occurrence::ProfileChanged { by, call: "set_pg".into(), generation: 2, changes: 2, first },
        Occurrence::ChangeRefused {
            by,
            call: "set_pg".into(),
            error: error.to_string(),
            left_out: 0,
        },
    ];
    assert_eq!(seen, expected);
    // What only asks leaves nothing.
    ping(client);
    assert_eq!(since(client, next).0, []);
}

#[test]
fn an_apply_is_an_entry_and_so_is_a_refused_one_but_no_dry_run() {
    let desk = Desk::new(1, 2);
    let client = &mut desk.client();
    let cursor = events(client, None).next;
    let call = |text: &str, dry_run| {
        Call::Apply(Apply { profile: text.to_owned(), file: Some("a.toml".to_owned()), dry_run })
    };
    let good = apply::profile(2_000);
    let applied: ApplyReply = client.call(call(&good, false)).unwrap();
    let _: ApplyReply = client.call(call(&apply::profile(2_100), true)).unwrap();
    for dry_run in [true, false] {
        let _ = refused(client.call::<ApplyReply>(call("name = 3\n", dry_run)));
    }
    let (seen, _) = since(client, cursor);
    let [made, refused] = seen.as_slice() else { panic!("{seen:?}") };
    let Occurrence::ProfileApplied { name, sha256, changes, generation: 2, .. } = made else {
        panic!("{made:?}")
    };
    let Occurrence::ProfileRefused { file, document_sha256, error, generation: 2, .. } = refused
    else {
        panic!("{refused:?}")
    };
    assert_eq!((name, sha256, *changes), (&applied.name, &applied.sha256, applied.changed.len()));
    assert_eq!(file.as_deref(), Some("a.toml"));
    assert_eq!(*document_sha256, holdfast_api::last_good::sha256("name = 3\n"));
    assert!(error.contains("a.toml:1"), "{error}");
}

/// A client that is refused all the time can't push everything else out of the journal.
#[test]
fn a_flood_of_refusals_leaves_few_entries() {
    let desk = Desk::new(1, 2);
    let client = &mut desk.client();
    let cursor = events(client, None).next;
    for _ in 0..200 {
        let _ = refused(client.call::<Done>(Call::PortHold(port_name("nobody"))));
    }
    let (seen, _) = since(client, cursor);
    assert_eq!(seen.len(), 5, "{seen:?}");
}

#[test]
fn links_and_losses_are_noticed_without_a_call() {
    let desk = Desk::new(2, 3);
    let client = &mut desk.client();
    let cursor = events(client, None).next;
    let at = Moment::now(lab::clock());
    let tell = |port, news| desk.links.send(LinkNews { port, news, at }).unwrap();
    tell(1, News::Down(DownReason::LinkDown));
    tell(1, News::Up);
    tell(2, News::Down(DownReason::NetdevGone));
    let losses = |worker: usize| &desk.stats[worker].losses[PortId::from_bits(2)];
    losses(0).overrun.store(7, Ordering::Relaxed);
    losses(0).violations.store(9, Ordering::Relaxed);
    let port = |n| format!("p{n}");
    let (seen, next) = since(client, cursor);
    let down = |port, reason| Occurrence::PortDown { port, reason };
    assert_eq!(
        seen,
        [
            down(port(1), DownReason::LinkDown),
            Occurrence::PortUp { port: port(1) },
            down(port(2), DownReason::NetdevGone),
            Occurrence::ReceiveOverrun { port: port(2), frames: 7, total: 7 },
            Occurrence::LosslessViolation { port: port(2), frames: 9, total: 9 },
        ]
    );
    // Soon after: it is counted and will be told with the next.
    losses(0).overrun.store(8, Ordering::Relaxed);
    assert_eq!(since(client, next), (vec![], next));
    // Nobody asks: the tick takes them all the same, or the channel of four would be full.
    (0..4).for_each(|_| tell(0, News::Mtu(9_000)));
    let until = Instant::now() + Duration::from_secs(20);
    while !desk.links.is_empty() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(desk.links.is_empty());
    let (seen, _) = since(client, next);
    let mtus = seen.iter().filter(|what| matches!(what, Occurrence::PortMtu { mtu: 9_000, .. }));
    assert_eq!(mtus.count(), 4);
    assert!(seen.contains(&Occurrence::LinkNewsLost { port: None }), "it was full: {seen:?}");
}

#[test]
fn a_silent_worker_is_an_entry_and_the_journal_is_answered_meanwhile() {
    let desk = Desk::new(1, 2);
    let client = &mut desk.client();
    let cursor = events(client, None).next;
    desk.rig.deaf.store(true, Ordering::Relaxed);
    let error = refused(client.call::<PongReply>(Call::Ping(Ping::default())));
    assert_eq!(error.code, ErrorCode::WorkerSilent);
    let (seen, _) = since(client, cursor);
    let waited_ns = crate::mailbox::PATIENCE.as_nanos() as u64;
    assert_eq!(seen, [Occurrence::WorkerSilent { worker: 0, waited_ns, left_out: 0 }]);
    desk.rig.deaf.store(false, Ordering::Relaxed);
}

/// Entries repeat what clients sent: the longest of them still fit into one answer.
#[test]
fn a_page_of_the_longest_entries_fits_into_a_line() {
    let by = By { pid: i32::MIN, uid: u32::MAX, gid: u32::MAX };
    let longest = holdfast_api::log_lines::logged(&"\u{1f}".repeat(1_000));
    let mut journal = super::super::journal::Journal::new();
    for _ in 0..super::super::journal::ENTRIES {
        journal.record(
            Moment::now(lab::clock()),
            Occurrence::ProfileRefused {
                by,
                file: Some(longest.clone()),
                document_sha256: "f".repeat(64),
                generation: u64::MAX,
                error: longest.clone(),
                left_out: u64::MAX,
            },
        );
    }
    let page = journal.page(None, None, None).unwrap();
    let line = Response::ok(u64::MAX, &page).to_line();
    assert_eq!(page.entries.len(), 64);
    assert!(line.len() < holdfast_api::line::MAX_LINE, "{}", line.len());
}

/// A storm has its queues and its own time, also one that was over before anybody looked.
#[test]
fn storms_are_told_with_their_time_and_their_end() {
    let desk = Desk::new(1, 2);
    let client = &mut desk.client();
    let cursor = events(client, None).next;
    let storms = &desk.stats[0].losses[PortId::from_bits(1)];
    let at = lab::clock().0;
    std::thread::sleep(Duration::from_millis(20));
    let tell = |total, stormed, at| {
        storms.last_stormed.store(1 << 3, Ordering::Relaxed);
        storms.last_storm_ns.store(at, Ordering::Relaxed);
        storms.stormed.store(stormed, Ordering::Relaxed);
        storms.storms.store(total, Ordering::Relaxed);
    };
    let begun = |total| Occurrence::StormBegan { port: "p1".to_owned(), queues: vec![3], total };
    let ended = Occurrence::StormEnded { port: "p1".to_owned(), queues: vec![3] };
    tell(1, 1 << 3, at);
    let reply = events(client, Some(cursor));
    let entry = &reply.entries[0];
    assert_eq!((&entry.what, entry.time_ns, reply.entries.len()), (&begun(1), at, 1));
    tell(1, 0, at);
    let (seen, next) = since(client, reply.next);
    assert_eq!(seen, std::slice::from_ref(&ended));
    tell(2, 0, at + 1);
    let (seen, next) = since(client, next);
    assert_eq!(seen, [begun(2), ended]);
    assert_eq!(since(client, next).0, []);
}

/// A suspected deadlock names its PGs and the ports it waits for.
#[test]
fn suspicions_are_told_with_the_ports_they_wait_for() {
    let desk = Desk::new(1, 3);
    let client = &mut desk.client();
    let cursor = events(client, None).next;
    let words = &desk.stats[0].losses[PortId::from_bits(1)];
    let at = lab::clock().0;
    let tell = |total, suspected, at| {
        words.last_suspected.store(1 << 3 | 1 << 4, Ordering::Relaxed);
        words.last_suspicion_ns.store(at, Ordering::Relaxed);
        words.waited_for.store(0b101, Ordering::Relaxed);
        words.suspected.store(suspected, Ordering::Relaxed);
        words.suspicions.store(total, Ordering::Relaxed);
    };
    let begun = |total| Occurrence::DeadlockSuspected {
        port: "p1".to_owned(),
        pgs: vec![3, 4],
        waits_for: vec!["p0".to_owned(), "p2".to_owned()],
        total,
    };
    let ended = |pgs| Occurrence::DeadlockResolved { port: "p1".to_owned(), pgs };
    tell(2, 1 << 3 | 1 << 4, at);
    let reply = events(client, Some(cursor));
    assert_eq!((&reply.entries[0].what, reply.entries[0].time_ns), (&begun(2), at));
    tell(2, 1 << 3, at);
    let (seen, next) = since(client, reply.next);
    assert_eq!(seen, [ended(vec![4])]);
    tell(4, 0, at + 1);
    let (seen, next) = since(client, next);
    assert_eq!(seen, [begun(4), ended(vec![3, 4])]);
    assert_eq!(since(client, next).0, []);
}
