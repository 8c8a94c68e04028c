use super::*;

const BY: By = By { pid: 7, uid: 0, gid: 0 };

#[test]
fn losses_are_errors_and_what_people_do_is_info() {
    let lost = Occurrence::LosslessViolation { port: "h1".to_owned(), frames: 3, total: 5 };
    assert_eq!(lost.severity(), Severity::Error);
    assert_eq!(
        (lost.subject().as_str(), lost.text().as_str()),
        ("port h1", "3 lossless frames were lost; 5 in all")
    );
    let down = |reason| Occurrence::PortDown { port: "h1".to_owned(), reason }.severity();
    assert_eq!(down(DownReason::LinkDown), Severity::Warn);
    assert_eq!(down(DownReason::NetdevGone), Severity::Error);
    let applied = |not_kept| Occurrence::ProfileApplied {
        by: BY,
        name: "lab".to_owned(),
        sha256: "0123456789abcdef".to_owned(),
        generation: 2,
        changes: 1,
        not_kept,
    };
    assert_eq!(applied(None).severity(), Severity::Info);
    assert_eq!(
        applied(None).text(),
        "0123456789ab applied, generation 2, 1 changes, by pid 7 uid 0 gid 0"
    );
    let unkept = applied(Some("disk full".to_owned()));
    assert_eq!(unkept.severity(), Severity::Warn, "it would be gone after a restart");
    assert!(unkept.text().ends_with("not kept for the next start: disk full"));
    assert!(Severity::Info < Severity::Warn && Severity::Warn < Severity::Error);
}

#[test]
fn a_clear_says_of_what() {
    let clear = |port: Option<&str>, pg| {
        let port = port.map(str::to_owned);
        Occurrence::WatermarksCleared { by: BY, port, pg, queue: None, pool: None }.text()
    };
    assert_eq!(clear(None, None), "all cleared by pid 7 uid 0 gid 0");
    assert_eq!(clear(Some("h1"), Some(3)), "of port h1 pg 3 cleared by pid 7 uid 0 gid 0");
}

#[test]
fn a_suspicion_names_the_ports_it_waits_for() {
    let suspected = Occurrence::DeadlockSuspected {
        port: "in".to_owned(),
        pgs: vec![3],
        waits_for: vec!["out".to_owned(), "h2".to_owned()],
        total: 2,
    };
    assert_eq!(suspected.severity(), Severity::Error);
    assert_eq!(suspected.subject(), "port in");
    let text = "suspected deadlock: no frame of PGs [3] can move, all are in paused queues of \
                out, h2; 2 in all; ask holdfast deadlock";
    assert_eq!(suspected.text(), text);
    let resolved = Occurrence::DeadlockResolved { port: "in".to_owned(), pgs: vec![3] };
    assert_eq!((resolved.severity(), resolved.subject().as_str()), (Severity::Info, "port in"));
}
