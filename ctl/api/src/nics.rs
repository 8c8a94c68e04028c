//! What is known of NICs and MAC control frames (EtherType 0x8808): whether a driver's NICs send
//! what the switch sends, and hand over what comes. The same rows, with their sources, are in
//! `deploy/NICS.md`. `holdfast doctor`, `lint --live` and `preflight` go by them (SPEC 9).

/// What becomes of MAC control frames one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// They pass; tested here.
    Passes,
    /// They are kept: the driver sets the NIC up so.
    Kept,
    /// They may be kept: it depends on the NIC, its firmware or its settings.
    MayBeKept,
    /// Nothing is known.
    Unknown,
}

impl Way {
    /// The words of the table in `deploy/NICS.md`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passes => "passes",
            Self::Kept => "kept",
            Self::MayBeKept => "may be kept",
            Self::Unknown => "not known",
        }
    }

    /// Whether frames may get lost this way by what is known.
    pub const fn is_doubtful(self) -> bool {
        matches!(self, Self::Kept | Self::MayBeKept)
    }
}

/// What is known of the NICs of one driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nic {
    /// The driver, as `ethtool -i` names it.
    pub driver: &'static str,
    /// Frames that the switch sends.
    pub sends: Way,
    /// Frames that come to the NIC.
    pub receives: Way,
    /// Why, and what can be done about it.
    pub note: &'static str,
}

impl Nic {
    /// Whether frames may get lost either way by what is known.
    pub const fn is_doubtful(&self) -> bool {
        self.sends.is_doubtful() || self.receives.is_doubtful()
    }
}

/// The table.
pub const NICS: [Nic; 6] = [
    Nic {
        driver: "i40e",
        sends: Way::Kept,
        receives: Way::MayBeKept,
        note: "the driver has the NIC drop 0x8808 from every function, so that no virtual \
               machine pauses the link; with flow control on, the NIC takes pauses for itself",
    },
    Nic {
        driver: "ice",
        sends: Way::Kept,
        receives: Way::MayBeKept,
        note: "the driver adds a rule that drops 0x8808 from the host, except in safe mode; with \
               flow control on, the NIC takes pauses for itself",
    },
    Nic {
        driver: "ixgbe",
        sends: Way::MayBeKept,
        receives: Way::MayBeKept,
        note: "virtual functions with spoof checking can't send 0x8808; bit DPF of register MFLCN \
               decides whether pauses that come reach the host: ethtool -A DEV rx off",
    },
    Nic {
        driver: "stmmac",
        sends: Way::Unknown,
        receives: Way::MayBeKept,
        note: "the MAC has a filter for control frames whose reset value lets none of them through",
    },
    Nic {
        driver: "veth",
        sends: Way::Passes,
        receives: Way::Passes,
        note: "there is no hardware that could keep them",
    },
    Nic {
        driver: "tun",
        sends: Way::Unknown,
        receives: Way::Unknown,
        note: "there is no hardware that could keep them; whoever holds the tap decides",
    },
];

/// What is known of the NICs of `driver`, if anything is.
pub fn known(driver: &str) -> Option<&'static Nic> {
    NICS.iter().find(|nic| nic.driver == driver)
}

/// Whether NICs of this driver may keep frames of type 0x8808, either way.
pub fn may_keep_mac_control(driver: &str) -> bool {
    known(driver).is_some_and(Nic::is_doubtful)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = include_str!("../../../deploy/NICS.md");

    /// The document's rows: driver, sends, receives.
    fn rows() -> Vec<[&'static str; 3]> {
        let cells = DOCUMENT.lines().filter_map(|line| line.strip_prefix("| `"));
        let row = |line: &'static str| {
            let mut cells = line.split('|').map(|cell| cell.trim().trim_end_matches('`'));
            [(); 3].map(|()| cells.next().unwrap_or_default())
        };
        cells.map(row).collect()
    }

    /// Who reads the document reads what the switch goes by.
    #[test]
    fn the_document_has_the_same_rows() {
        let ours: Vec<_> =
            NICS.iter().map(|nic| [nic.driver, nic.sends.name(), nic.receives.name()]).collect();
        assert_eq!(rows(), ours);
    }

    #[test]
    fn intel_is_doubtful_a_veth_is_not_and_nothing_is_said_of_others() {
        for driver in ["i40e", "ice", "ixgbe"] {
            assert!(may_keep_mac_control(driver), "{driver}");
        }
        assert!(!may_keep_mac_control("veth") && !may_keep_mac_control("mlx5_core"));
        assert_eq!(known("mlx5_core"), None);
        assert!(known("i40e").is_some_and(|nic| nic.sends == Way::Kept));
    }
}
