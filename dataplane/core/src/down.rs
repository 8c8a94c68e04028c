//! Why a port is down (SPEC 9).

/// What took a port down; named as in CLI, API and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum DownReason {
    /// The link is down: administratively, or it has no carrier.
    LinkDown,
    /// The netdev was deleted, renamed before it could be opened, or moved to another namespace.
    NetdevGone,
    /// The network namespace was deleted: its name is gone, or that of another one.
    NetnsGone,
    /// Somebody changed the MTU: the port is opened anew with it.
    MtuChanged,
    /// Somebody changed the number of RX queues: the port is opened anew with them.
    QueuesChanged,
    /// Somebody detached or replaced the XDP program.
    ProgramDetached,
}

impl DownReason {
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// All of them, in the order of their declaration.
    pub const ALL: [Self; 6] = [
        Self::LinkDown,
        Self::NetdevGone,
        Self::NetnsGone,
        Self::MtuChanged,
        Self::QueuesChanged,
        Self::ProgramDetached,
    ];

    /// The name for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LinkDown => "link_down",
            Self::NetdevGone => "netdev_gone",
            Self::NetnsGone => "netns_gone",
            Self::MtuChanged => "mtu_changed",
            Self::QueuesChanged => "queues_changed",
            Self::ProgramDetached => "program_detached",
        }
    }

    /// The reason of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }

    /// What happened, for people.
    pub const fn text(self) -> &'static str {
        match self {
            Self::LinkDown => "its link is down",
            Self::NetdevGone => "its netdev is gone",
            Self::NetnsGone => "its network namespace is gone",
            Self::MtuChanged => "its MTU was changed",
            Self::QueuesChanged => "its RX queues were changed",
            Self::ProgramDetached => "its XDP program was detached by somebody else",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_known_by_its_name() {
        for (number, reason) in DownReason::ALL.into_iter().enumerate() {
            assert_eq!(DownReason::of_name(reason.name()), Some(reason));
            assert_eq!(reason as usize, number);
        }
        assert_eq!(DownReason::of_name("tired"), None);
    }
}
