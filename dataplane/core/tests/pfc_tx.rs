//! Sent pauses: SPEC 4.1, sentence by sentence, and timelines against a peer that obeys.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use holdfast_core::ids::*;
use holdfast_core::pfc::{PauseCause, PauseCounts, PauseFrame, PauseReceiver, PauseSender};
use holdfast_core::profile::*;
use holdfast_core::units::*;
use holdfast_wire::mac_control::MacControl;
use proptest::prelude::*;

/// One quantum lasts 1 ns at this speed.
const NS_QUANTA: BitRate = BitRate::gigabits(512);
const FULL: u64 = 65_535;
const TWO: PrioritySet = PrioritySet(0b0001_1000);

fn p(n: u8) -> Priority {
    Priority::new(n).unwrap()
}

fn only(n: u8) -> PrioritySet {
    PrioritySet::only(p(n))
}

fn spec(enabled: PrioritySet, resume: Resume) -> PfcSpec {
    PfcSpec {
        enabled,
        quanta: Quanta(FULL as u16),
        resume,
        link_pause: false,
        rx_backlog_mark: 256,
    }
}

fn sender(resume: Resume) -> PauseSender {
    PauseSender::new(&spec(TWO, resume), NS_QUANTA)
}

/// A frame with `times` set and everything else 0.
fn frame(times: &[(u8, u16)]) -> PauseFrame {
    let mut frame = PauseFrame { enable: 0, quanta: [0; 8] };
    for (priority, time) in times {
        frame.enable |= 1 << priority;
        frame.quanta[usize::from(*priority)] = *time;
    }
    frame
}

/// Takes all frames that are to go out at `now`.
fn drain(tx: &mut PauseSender, now: Time) -> Vec<PauseFrame> {
    let mut frames = Vec::new();
    while let Some(frame) = tx.next_frame(now) {
        tx.sent(&frame, now);
        frames.push(frame);
        assert!(frames.len() < 10, "the sender never has enough");
    }
    frames
}

#[test]
fn xoff_carries_pause_quanta_and_xon_0() {
    let mut tx = sender(Resume::Xon);
    tx.set_cause(PauseCause::Mmu, only(3));
    assert_eq!(drain(&mut tx, Time(0)), [frame(&[(3, 65_535)])]);
    assert_eq!(drain(&mut tx, Time(1)), []);
    tx.set_cause(PauseCause::Mmu, PrioritySet::EMPTY);
    assert_eq!(drain(&mut tx, Time(2)), [frame(&[(3, 0)])]);
    assert_eq!(tx.counts(p(3)), PauseCounts { xoff: 1, refresh: 0, xon: 1 });
}

#[test]
fn only_enabled_priorities_are_paused() {
    let mut tx = sender(Resume::Xon);
    tx.set_cause(PauseCause::Mmu, PrioritySet(0xff));
    assert_eq!(tx.cause(PauseCause::Mmu), TWO);
    assert_eq!(drain(&mut tx, Time(0)), [frame(&[(3, 65_535), (4, 65_535)])]);
}

#[test]
fn a_priority_is_paused_while_any_cause_holds() {
    let mut tx = sender(Resume::Xon);
    for cause in PauseCause::ALL {
        tx.set_cause(cause, only(3));
    }
    assert_eq!(drain(&mut tx, Time(0)), [frame(&[(3, 65_535)])]);
    for cause in [PauseCause::Admin, PauseCause::Mmu] {
        tx.set_cause(cause, PrioritySet::EMPTY);
        assert_eq!(drain(&mut tx, Time(1)), [], "a cause still holds");
    }
    assert_eq!(tx.cause(PauseCause::RxBacklog), only(3));
    tx.set_cause(PauseCause::RxBacklog, PrioritySet::EMPTY);
    assert_eq!(drain(&mut tx, Time(2)), [frame(&[(3, 0)])]);
}

#[test]
fn one_frame_pauses_one_priority_and_releases_another() {
    let mut tx = sender(Resume::Xon);
    tx.set_cause(PauseCause::Mmu, only(3));
    drain(&mut tx, Time(0));
    tx.set_cause(PauseCause::Mmu, only(4));
    assert_eq!(drain(&mut tx, Time(1)), [frame(&[(3, 0), (4, 65_535)])]);
    assert_eq!(tx.paused(), only(4));
}

#[test]
fn a_level_that_came_and_went_unseen_sends_nothing() {
    let mut tx = sender(Resume::Xon);
    tx.set_cause(PauseCause::Mmu, only(3));
    tx.set_cause(PauseCause::Mmu, PrioritySet::EMPTY);
    assert_eq!(drain(&mut tx, Time(0)), []);
}

#[test]
fn refresh_comes_between_a_quarter_and_half_of_the_pause() {
    let mut tx = sender(Resume::Xon);
    tx.set_cause(PauseCause::Mmu, only(3));
    drain(&mut tx, Time(0));
    let due = tx.deadline();
    assert!(FULL / 4 <= due.0 && due.0 <= FULL / 2, "{due:?}");
    assert_eq!(tx.next_frame(Time(due.0 - 1)), None);
    assert_eq!(drain(&mut tx, due), [frame(&[(3, 65_535)])]);
    assert_eq!(tx.counts(p(3)), PauseCounts { xoff: 1, refresh: 1, xon: 0 });
    assert_eq!(tx.deadline(), Time(2 * due.0));
}

#[test]
fn refresh_counts_from_the_frame_that_was_taken() {
    let mut tx = sender(Resume::Xon);
    tx.set_cause(PauseCause::Mmu, only(3));
    assert!(tx.next_frame(Time(0)).is_some());
    assert_eq!(tx.deadline(), Time(0), "what wasn't taken is asked for at once");
    assert_eq!(drain(&mut tx, Time(50_000)).len(), 1);
    assert!(tx.deadline() >= Time(50_000 + FULL / 4));
}

#[test]
fn a_frame_that_was_not_taken_is_made_anew_from_the_level() {
    let mut tx = sender(Resume::Xon);
    tx.set_cause(PauseCause::Mmu, only(3));
    assert_eq!(tx.next_frame(Time(0)), Some(frame(&[(3, 65_535)])));
    assert_eq!(tx.next_frame(Time(1)), Some(frame(&[(3, 65_535)])));
    tx.set_cause(PauseCause::Mmu, TWO);
    assert_eq!(tx.next_frame(Time(2)), Some(frame(&[(3, 65_535), (4, 65_535)])));
    tx.set_cause(PauseCause::Mmu, PrioritySet::EMPTY);
    assert_eq!(tx.next_frame(Time(3)), None, "the peer was never told");
    assert_eq!(tx.counts(p(3)), PauseCounts::default());
}

#[test]
fn expire_sends_no_xon_and_stops_refreshing() {
    let mut tx = sender(Resume::Expire);
    tx.set_cause(PauseCause::Mmu, only(3));
    drain(&mut tx, Time(0));
    let due = tx.deadline();
    assert_eq!(drain(&mut tx, due).len(), 1, "refreshed while it lasts");
    tx.set_cause(PauseCause::Mmu, PrioritySet::EMPTY);
    assert_eq!(drain(&mut tx, Time(30_000)), []);
    assert_eq!(tx.deadline(), Time::NEVER);
    tx.set_cause(PauseCause::Mmu, only(3));
    assert_eq!(drain(&mut tx, Time(30_001)), [frame(&[(3, 65_535)])]);
    assert_eq!(tx.counts(p(3)), PauseCounts { xoff: 2, refresh: 1, xon: 0 });
    assert_eq!((tx.paused_time(p(3), Time(30_005)), tx.transitions(p(3))), (Nanos(30_004), 2));
}

#[test]
fn disabling_pfc_on_a_paused_priority_sends_xon_at_once() {
    for resume in [Resume::Xon, Resume::Expire] {
        let mut tx = sender(resume);
        tx.set_cause(PauseCause::Mmu, TWO);
        drain(&mut tx, Time(0));
        tx.adopt(&spec(only(4), resume), NS_QUANTA);
        assert_eq!(tx.deadline(), Time(0));
        assert_eq!(drain(&mut tx, Time(10)), [frame(&[(3, 0)])], "{resume:?}");
        assert_eq!(tx.paused(), only(4));
        assert_eq!(tx.paused_time(p(3), Time(90)), Nanos(10));
    }
}

#[test]
fn other_quanta_and_speed_hold_from_the_next_frame_on() {
    let mut tx = sender(Resume::Xon);
    tx.set_cause(PauseCause::Mmu, only(3));
    drain(&mut tx, Time(0));
    let due = tx.deadline();
    tx.adopt(&PfcSpec { quanta: Quanta(100), ..spec(TWO, Resume::Xon) }, NS_QUANTA);
    assert_eq!(tx.deadline(), due, "the peer still counts the longer time");
    assert_eq!(drain(&mut tx, due), [frame(&[(3, 100)])]);
    let short = tx.deadline().since(due);
    assert!(Nanos(25) <= short && short <= Nanos(50), "{short:?}");
    tx.adopt(&PfcSpec { quanta: Quanta(100), ..spec(TWO, Resume::Xon) }, BitRate::gigabits(256));
    let slower = tx.deadline().since(due);
    assert!(Nanos(50) <= slower && slower <= Nanos(100), "{slower:?}");
}

#[test]
fn shutdown_sends_xon_for_every_paused_priority_and_pauses_no_more() {
    for resume in [Resume::Xon, Resume::Expire] {
        let mut tx = sender(resume);
        tx.set_cause(PauseCause::Mmu, only(3));
        tx.set_cause(PauseCause::Admin, only(4));
        drain(&mut tx, Time(0));
        tx.release_all();
        assert_eq!(drain(&mut tx, Time(1)), [frame(&[(3, 0), (4, 0)])], "{resume:?}");
        tx.set_cause(PauseCause::Mmu, TWO);
        assert_eq!(drain(&mut tx, Time(2)), []);
        assert_eq!(tx.deadline(), Time::NEVER);
    }
}

#[test]
fn after_a_link_flap_the_level_is_told_anew() {
    let mut tx = sender(Resume::Xon);
    tx.set_cause(PauseCause::Mmu, TWO);
    drain(&mut tx, Time(0));
    tx.forget(Time(100));
    tx.set_cause(PauseCause::Mmu, only(4));
    assert_eq!(drain(&mut tx, Time(200)), [frame(&[(4, 65_535)])]);
    assert_eq!(tx.counts(p(4)), PauseCounts { xoff: 2, refresh: 0, xon: 0 });
    assert_eq!(tx.counts(p(3)), PauseCounts { xoff: 1, refresh: 0, xon: 0 });
    assert_eq!(tx.paused_time(p(3), Time(300)), Nanos(100));
}

#[test]
fn quanta_0_in_a_profile_would_be_xon_and_is_sent_as_1() {
    let mut tx =
        PauseSender::new(&PfcSpec { quanta: Quanta(0), ..spec(TWO, Resume::Xon) }, NS_QUANTA);
    tx.set_cause(PauseCause::Mmu, only(3));
    assert_eq!(drain(&mut tx, Time(0)), [frame(&[(3, 1)])]);
}

#[test]
fn causes_have_the_names_of_the_metrics() {
    assert_eq!(PauseCause::ALL.map(PauseCause::name), ["mmu", "rx_backlog", "admin"]);
}

/// One turn of a worker: it comes `late` after it should, with new causes, and the ring may refuse.
#[derive(Debug, Clone)]
struct Turn {
    late: u64,
    causes: Option<[u8; 3]>,
    refuses: bool,
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let causes = proptest::option::weighted(0.3, proptest::array::uniform3(any::<u8>()));
    let turn = (0..FULL / 8, causes, proptest::bool::weighted(0.2));
    let turn = turn.prop_map(|(late, causes, refuses)| Turn { late, causes, refuses });
    proptest::collection::vec(turn, 1..200)
}

proptest! {
    /// The peer obeys what it gets. Then it is paused exactly where the level says so, without a
    /// gap, and refreshed in time by a worker that is late by up to an eighth of the pause.
    #[test]
    fn an_obeying_peer_follows_the_level(enabled: u8, expire: bool, turns in turns()) {
        let resume = if expire { Resume::Expire } else { Resume::Xon };
        let spec = spec(PrioritySet(enabled), resume);
        let mut tx = PauseSender::new(&spec, NS_QUANTA);
        let mut peer = PauseReceiver::new(&spec, NS_QUANTA);
        let mut last = [0u64; 8];
        let (mut now, mut refused) = (0u64, false);
        for turn in turns {
            now = tx.deadline().0.clamp(now, now + 40_000) + if refused { 0 } else { turn.late };
            if let Some(causes) = turn.causes {
                for (cause, set) in PauseCause::ALL.into_iter().zip(causes) {
                    tx.set_cause(cause, PrioritySet(set));
                }
            }
            let before = tx.paused();
            prop_assert_eq!(before.0 & !enabled, 0);
            let gap = before.0 & !peer.paused_priorities(Time(now)).0;
            prop_assert!(gap == 0 || expire, "the peer's pause ran out");
            // At most one turn is refused, or the refresh would be late by no fault of the sender.
            refused = turn.refuses && !refused;
            let Some(frame) = tx.next_frame(Time(now)) else { continue };
            for priority in Priority::all() {
                let (n, quanta) = (priority.index(), frame.quanta[priority.index()]);
                let set = frame.enable >> n & 1 == 1;
                prop_assert!(set || quanta == 0, "a clear bit has a time");
                prop_assert!(!set || quanta > 0 || !expire, "XON where pauses expire");
                if set && quanta > 0 && before.contains(priority) {
                    let since = now - last[n];
                    prop_assert!(since >= FULL / 4, "refresh too early: {}", since);
                    prop_assert!(since <= FULL / 2, "refresh too late: {}", since);
                }
            }
            if refused {
                prop_assert_eq!(tx.next_frame(Time(now)), Some(frame));
                continue;
            }
            tx.sent(&frame, Time(now));
            for n in (0..8).filter(|n| frame.enable >> n & 1 == 1) {
                last[n] = now;
            }
            prop_assert_eq!(tx.next_frame(Time(now)), None, "one frame says it all");
            let PauseFrame { enable, quanta } = frame;
            peer.receive(&MacControl::Pfc { enable, quanta }, Time(now));
            let level = tx.level();
            let paused = peer.paused_priorities(Time(now));
            prop_assert_eq!(level.0 & !paused.0, 0, "a paused priority isn't paused at the peer");
            prop_assert!(expire || paused == level, "a released priority is paused at the peer");
        }
        for priority in Priority::all().filter(|_| !expire) {
            let (sent, got) = (tx.counts(priority), peer.counts(priority));
            prop_assert_eq!(sent, got);
            prop_assert_eq!(
                tx.paused_time(priority, Time(now)), peer.paused_time(priority, Time(now)));
            prop_assert_eq!(tx.transitions(priority), peer.transitions(priority));
        }
    }
}
