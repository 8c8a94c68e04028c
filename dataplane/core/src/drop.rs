//! Why a frame was dropped: a closed set, with a counter for each by construction (SPEC 3.8).

macro_rules! drop_reasons {
    ($($(#[$doc:meta])* $variant:ident => $name:literal,)*) => {
        /// The reason of a drop (SPEC 3.8). Add one only with a reason of your own.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum DropReason { $($(#[$doc])* $variant,)* }

        impl DropReason {
            /// All of them, in the order of their counters.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
            /// How many there are.
            pub const COUNT: usize = Self::ALL.len();

            /// The name in CLI, API and metrics.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

drop_reasons! {
    /// A lossless PG had neither Headroom nor Service left: the number that must stay 0.
    HeadroomOverflow => "headroom_overflow",
    /// A lossy PG's limit or pool was exhausted.
    LossyIngress => "lossy_ingress",
    /// A lossy frame found its egress queue at the limit.
    QueueLimit => "queue_limit",
    /// WRED dropped a frame that is not ECN-capable.
    Wred => "wred",
    /// A copy of a flooded frame was over the copy budget.
    FloodLimit => "flood_limit",
    /// The queue is stormed and its watchdog drops.
    Watchdog => "watchdog",
    /// The egress port is down.
    PortDown => "port_down",
    /// The switch is shutting down.
    Shutdown => "shutdown",
    /// A reserved group address that the switch doesn't forward.
    ReservedGroup => "reserved_group",
    /// A MAC control frame (0x8808) ends here; not counted as a drop of data.
    MacControl => "mac_control",
    /// Shorter than an Ethernet header.
    Parse => "parse",
    /// Longer than the port's MTU allows.
    TooLong => "too_long",
    /// The VLAN isn't configured on the port.
    Vlan => "vlan",
    /// No port to send to.
    NoEgress => "no_egress",
    /// The destination lies behind the port it came from.
    SamePort => "same_port",
    /// The XDP program dropped a lossy frame under receive pressure.
    RxPressureLossy => "rx_pressure_lossy",
}

/// A counter for each reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DropCounters([u64; DropReason::COUNT]);

impl DropCounters {
    /// Counts one drop.
    #[inline]
    pub fn count(&mut self, reason: DropReason) {
        self.0[reason as usize] += 1;
    }

    /// Counts several drops of one reason.
    #[inline]
    pub fn add(&mut self, reason: DropReason, frames: u64) {
        self.0[reason as usize] += frames;
    }

    /// Drops of this reason.
    pub fn get(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }

    /// Every reason with its counter.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL.iter().map(|reason| (*reason, self.get(*reason)))
    }
}
