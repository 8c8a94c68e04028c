//! What follows from frames that arrived, and from those that didn't. Asks nobody.
//!
//! Which frame shows what, from the least to the most that a NIC may look at:
//! `link` that there is a way at all, `unknown_opcode` that EtherType 0x8808 passes,
//! `empty_vector` that PFC passes, `resume` that PFC passes which a NIC would act upon itself.

use holdfast_api::message::{Peer, PreflightKind};
use holdfast_api::nics::{Nic, Way};
use serde::Serialize;
use std::collections::BTreeMap;

/// Whether PFC gets through one way at one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// It does.
    Works,
    /// What we send doesn't leave the NIC.
    SwallowedOnTx,
    /// What arrives at the NIC doesn't reach the switch.
    FilteredOnRx,
    /// It gets lost, at this port or at the other one.
    Lost,
    /// The peer doesn't act upon it: it gets lost, or the peer has no PFC.
    Ignored,
    /// There is nothing to tell it by.
    CantTell,
}

impl State {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::SwallowedOnTx => "swallowed on TX",
            Self::FilteredOnRx => "filtered on RX",
            Self::Lost => "lost on the way",
            Self::Ignored => "ignored by the peer",
            Self::CantTell => "can't tell",
        }
    }
}

/// A state and how it is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Verdict {
    pub(super) state: State,
    pub(super) why: String,
}

impl Verdict {
    pub(super) fn new(state: State, why: impl Into<String>) -> Self {
        Self { state, why: why.into() }
    }
}

/// Frames of one kind, one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Count {
    pub(super) sent: u64,
    pub(super) arrived: u64,
}

/// What is known of a port besides its frames.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    /// PFC frames that it received before, from anybody.
    pub(super) heard: u64,
    /// Whether its peer was seen to obey.
    pub(super) peer: Peer,
    /// What is known of its NIC.
    pub(super) nic: Option<&'static Nic>,
}

/// Frames from one port to another.
#[derive(Debug)]
pub(super) struct Run<'a> {
    pub(super) from: (&'a str, Before),
    pub(super) to: (&'a str, Before),
    pub(super) counts: BTreeMap<PreflightKind, Count>,
}

impl Run<'_> {
    /// How sending at the one port and receiving at the other is, in this order.
    pub(super) fn verdicts(&self) -> (Verdict, Verdict) {
        let ((from, sender), (to, receiver)) = (self.from, self.to);
        let both = |state, why: &str| (Verdict::new(state, why), Verdict::new(state, why));
        let sent: u64 = self.counts.values().map(|count| count.sent).sum();
        if sent == 0 {
            let why = format!("{from} took none of the frames: its link is down, or its ring full");
            return both(State::CantTell, &why);
        }
        let arrived: u64 = self.counts.values().map(|count| count.arrived).sum();
        if arrived == 0 && self.counts.contains_key(&PreflightKind::Link) {
            let why = format!("no frame of {from} arrives at {to}: are they joined by a cable?");
            return both(State::CantTell, &why);
        }
        let Some(lost) = self.lost() else {
            let why = format!("every frame of {from} arrives at {to}");
            return both(State::Works, &why);
        };
        if receiver.heard > 0 {
            let others = format!("{to} has received {} PFC frames", receiver.heard);
            let why = format!("{others} from elsewhere or before, of ours {lost}");
            return (Verdict::new(State::SwallowedOnTx, why), Verdict::new(State::Works, others));
        }
        if sender.peer == Peer::Obeys {
            let obeyed = format!("the peer of {from} was seen to obey its pauses");
            let why = format!("{obeyed}, at {to} {lost}");
            return (Verdict::new(State::Works, obeyed), Verdict::new(State::FilteredOnRx, why));
        }
        let keeps = |nic: Option<&Nic>, way: fn(&Nic) -> Way| nic.map(way) == Some(Way::Kept);
        let keeps_tx = keeps(sender.nic, |nic| nic.sends);
        let may_keep_rx = receiver.nic.is_none_or(|nic| nic.receives.is_doubtful());
        if keeps_tx && !may_keep_rx {
            let why = format!("{lost}; the driver of {from} is known for it (deploy/NICS.md)");
            let unknown = format!("{from} sends none that could arrive");
            let tx = Verdict::new(State::SwallowedOnTx, why);
            return (tx, Verdict::new(State::CantTell, unknown));
        }
        let why = format!(
            "{lost}: swallowed on TX at {from}, or filtered on RX at {to}; try each \
                           with a port or a host that is known to pass PFC"
        );
        both(State::Lost, &why)
    }

    /// Which kinds of MAC control don't arrive, for people; `None` if all do.
    fn lost(&self) -> Option<String> {
        let control = self.counts.iter().filter(|(kind, _)| **kind != PreflightKind::Link);
        let lost = control.filter(|(_, count)| count.arrived < count.sent);
        let lost: Vec<String> = lost
            .map(|(kind, count)| format!("{} of {} {}", count.arrived, count.sent, what(*kind)))
            .collect();
        (!lost.is_empty()).then(|| format!("there arrived {}", lost.join(", ")))
    }
}

const fn what(kind: PreflightKind) -> &'static str {
    match kind {
        PreflightKind::Link => "plain frames",
        PreflightKind::UnknownOpcode => "with an unknown opcode",
        PreflightKind::EmptyVector => "PFC without a priority",
        PreflightKind::Resume => "PFC with time 0",
    }
}

/// What can be told of a port by itself: sending and receiving. `waited` seconds were given to
/// its peer to send something.
pub(super) fn alone(port: &str, seen: Before, waited: u64) -> (Verdict, Verdict) {
    let sends = match seen.peer {
        Peer::Obeys => Verdict::new(State::Works, "the peer was seen to obey our pauses"),
        Peer::Deaf => {
            let why = "the peer goes on while it is paused: our PFC is swallowed, or the peer has \
                       no PFC on this priority";
            Verdict::new(State::Ignored, why)
        }
        Peer::Unknown => {
            let why = format!(
                "the peer of {port} was not paused long enough to be seen; pause it \
                               by traffic, or join two ports by a cable and use --peer"
            );
            Verdict::new(State::CantTell, why)
        }
    };
    let receives = match seen.heard {
        0 => {
            let why = format!(
                "{port} has received no PFC frame yet, {waited} s waited for one; \
                               have the peer send one and use --wait"
            );
            Verdict::new(State::CantTell, why)
        }
        heard => Verdict::new(State::Works, format!("{heard} PFC frames were received")),
    };
    (sends, receives)
}

/// Frames within the time that was looked at that make a port busy: more than a host sends by
/// itself now and then.
pub(super) const BUSY: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_api::nics::known;

    const QUIET: Before = Before { heard: 0, peer: Peer::Unknown, nic: None };

    fn run(from: Before, to: Before, arrived: [u64; 4]) -> (State, State) {
        use PreflightKind::{EmptyVector, Link, Resume, UnknownOpcode};
        let kinds = [Link, UnknownOpcode, EmptyVector, Resume];
        let counts = kinds.into_iter().zip(arrived);
        let counts = counts.map(|(kind, arrived)| (kind, Count { sent: 3, arrived })).collect();
        let (tx, rx) = Run { from: ("a", from), to: ("b", to), counts }.verdicts();
        assert!(!tx.why.is_empty() && !rx.why.is_empty());
        (tx.state, rx.state)
    }

    #[test]
    fn all_that_arrive_work_and_none_that_arrive_are_no_cable() {
        assert_eq!(run(QUIET, QUIET, [3; 4]), (State::Works, State::Works));
        assert_eq!(run(QUIET, QUIET, [0; 4]), (State::CantTell, State::CantTell));
        // Even where something else is known of either: it wasn't these two then.
        let heard = Before { heard: 9, ..QUIET };
        assert_eq!(run(QUIET, heard, [0; 4]), (State::CantTell, State::CantTell));
    }

    /// Whatever part of MAC control is missing: by type, by opcode, by what a NIC acts upon, or
    /// only some frames of a kind.
    #[test]
    fn any_kind_that_is_missing_is_a_fault_and_who_it_is_needs_evidence() {
        for arrived in [[3, 0, 0, 0], [3, 3, 0, 0], [3, 3, 3, 0], [3, 0, 3, 3], [3, 3, 3, 2]] {
            assert_eq!(run(QUIET, QUIET, arrived), (State::Lost, State::Lost), "{arrived:?}");
            let heard = Before { heard: 1, ..QUIET };
            let swallowed = (State::SwallowedOnTx, State::Works);
            assert_eq!(run(QUIET, heard, arrived), swallowed, "{arrived:?}");
            let obeyed = Before { peer: Peer::Obeys, ..QUIET };
            let filtered = (State::Works, State::FilteredOnRx);
            assert_eq!(run(obeyed, QUIET, arrived), filtered, "{arrived:?}");
            let deaf = Before { peer: Peer::Deaf, ..QUIET };
            assert_eq!(run(deaf, QUIET, arrived), (State::Lost, State::Lost), "{arrived:?}");
        }
    }

    /// The table decides only where the other end is known not to be it.
    #[test]
    fn a_driver_that_is_known_for_it_is_named() {
        let nic = |driver| Before { nic: known(driver), ..QUIET };
        let lost = [3, 0, 0, 0];
        let swallowed = (State::SwallowedOnTx, State::CantTell);
        assert_eq!(run(nic("ice"), nic("veth"), lost), swallowed);
        assert_eq!(run(nic("ice"), nic("ice"), lost), (State::Lost, State::Lost));
        assert_eq!(run(nic("ice"), nic("mlx5_core"), lost), (State::Lost, State::Lost));
        assert_eq!(run(nic("ixgbe"), nic("veth"), lost), (State::Lost, State::Lost));
        assert_eq!(run(nic("veth"), nic("veth"), lost), (State::Lost, State::Lost));
        // What was seen goes before what is known of others.
        assert_eq!(run(nic("ice"), nic("veth"), [3; 4]), (State::Works, State::Works));
    }

    #[test]
    fn a_port_by_itself_is_judged_by_what_its_peer_did() {
        let states = |seen| {
            let (sends, receives) = alone("a", seen, 0);
            (sends.state, receives.state)
        };
        assert_eq!(states(QUIET), (State::CantTell, State::CantTell));
        let seen = Before { heard: 1, peer: Peer::Obeys, nic: None };
        assert_eq!(states(seen), (State::Works, State::Works));
        let deaf = Before { peer: Peer::Deaf, ..QUIET };
        assert_eq!(states(deaf), (State::Ignored, State::CantTell));
    }

    /// Without a plain frame, which a wire would carry on, nothing tells a cable from a NIC.
    #[test]
    fn a_ring_that_takes_nothing_says_nothing_of_the_nic() {
        let counts = [(PreflightKind::EmptyVector, Count::default())].into();
        let run = Run { from: ("a", QUIET), to: ("b", QUIET), counts };
        assert_eq!(run.verdicts().0.state, State::CantTell);
    }
}
