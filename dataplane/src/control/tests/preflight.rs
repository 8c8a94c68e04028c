//! Frames of a preflight: sent as asked, and never one that could end a pause.

use super::*;

fn frames(port: &str, kind: PreflightKind, frames: u8, priority: Option<u8>) -> Call {
    Call::Preflight(Preflight { port: port.to_owned(), kind, frames, priority })
}

/// Each kind leaves its own port, so many times, and no other.
#[test]
fn what_is_asked_for_leaves_its_port() {
    let desk = Desk::new(2, 2);
    let client = &mut desk.client();
    let kinds = [
        (PreflightKind::Link, None),
        (PreflightKind::UnknownOpcode, None),
        (PreflightKind::EmptyVector, None),
        (PreflightKind::Resume, Some(7)),
    ];
    for (kind, priority) in kinds {
        let reply: PreflightReply = client.call(frames("p1", kind, 2, priority)).unwrap();
        assert_eq!(reply.sent, 2);
    }
    let control = |n: usize| {
        desk.rig.act(move |lab| std::mem::take(&mut lab.wires[n].borrow_mut().control).len())
    };
    assert_eq!((control(0), control(1)), (0, 8));
}

#[test]
fn what_could_end_a_pause_or_makes_no_sense_is_refused_by_its_place() {
    let desk = Desk::new(1, 2);
    let client = &mut desk.client();
    let wrong = [
        (frames("p1", PreflightKind::Resume, 1, Some(LOSSLESS)), "priority"),
        (frames("p1", PreflightKind::Resume, 1, Some(8)), "priority"),
        (frames("p1", PreflightKind::Resume, 1, None), "priority"),
        (frames("p1", PreflightKind::Link, 1, Some(7)), "priority"),
        (frames("p1", PreflightKind::Link, 0, None), "frames"),
        (frames("p1", PreflightKind::Link, MAX_PREFLIGHT + 1, None), "frames"),
        (frames("p9", PreflightKind::Link, 1, None), "port"),
    ];
    for (call, place) in wrong {
        let body = refused(client.call::<PreflightReply>(call.clone()));
        assert_eq!(body.place.as_deref(), Some(place), "{call:?}");
        assert!(body.fix.is_some());
    }
}
