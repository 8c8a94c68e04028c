//! What formulas are told about link, traffic and switch.

use holdfast_api::amount::Distance;
use holdfast_api::profile_doc::Share;
use holdfast_core::profile::FRAME_OVERHEAD;
use holdfast_core::units::{BitRate, Bytes, CellSize, FrameLen, Nanos};

/// The longest frame where no MTU is given.
const LONGEST: FrameLen = FrameLen(9_216);

/// The conditions a formula computes for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Given {
    /// The link's speed.
    pub speed: BitRate,
    /// Bytes of a cell.
    pub cell: CellSize,
    /// From our XOFF to the last frame that was under way.
    pub t_loop: Option<Nanos>,
    /// Length of the cable; for `ac5p` and `exact` it comes on top of `t_loop`.
    pub cable: Option<Distance>,
    /// The ports' MTU, in the field's formulas the longest frame; `None`: 9216, and 9100 in
    /// `sonic` and `mlx5`.
    pub mtu: Option<u16>,
    /// The smallest lossless frame, without FCS (`exact`).
    pub smallest: FrameLen,
    /// Whether a largest frame may just be leaving when the PFC frame wants to (`exact`).
    pub reverse_frame: bool,
    /// From the charge that decides XOFF to its frame on the wire (`cpu`).
    pub xoff_reaction: Nanos,
    /// RX backlog that pauses, frames (`cpu`).
    pub rx_backlog_mark: u32,
    /// Transmit plus receive delay of one end's interface (`ieee`).
    pub interface_delay: Nanos,
    /// Share of small packets by bytes (`sonic`).
    pub small_share: Share,
    /// MTU of lossless traffic (`sonic`).
    pub lossless_mtu: u16,
    /// Bytes that one gearbox holds (`sonic`).
    pub gearbox: Bytes,
    /// Lanes of the port: 8 of them are two buffer units (`sonic`).
    pub lanes: u8,
    /// The ASIC's pipeline latency, where known: SONiC's xon (`sonic`).
    pub pipeline_latency: Option<Bytes>,
}

impl Given {
    /// A link of that speed, everything else by default.
    pub const fn new(speed: BitRate) -> Self {
        Self {
            speed,
            cell: CellSize::DEFAULT,
            t_loop: None,
            cable: None,
            mtu: None,
            smallest: FrameLen(1_086),
            reverse_frame: false,
            xoff_reaction: Nanos::micros(100),
            rx_backlog_mark: 256,
            interface_delay: Nanos(0),
            small_share: Share::ALL,
            lossless_mtu: 1_024,
            gearbox: Bytes(0),
            lanes: 4,
            pipeline_latency: None,
        }
    }

    /// The loop with its cable, 0 if neither is given.
    pub(super) fn whole_loop(&self) -> Nanos {
        t_loop(self.t_loop, self.cable).unwrap_or_default()
    }

    /// The cable, 0 if it isn't given.
    pub(super) fn centimetres(&self) -> u64 {
        self.cable.map_or(0, |cable| cable.0)
    }

    /// The longest frame that a port of this MTU takes, tags included, without FCS.
    pub fn longest_frame(&self) -> FrameLen {
        self.mtu.map_or(LONGEST, |mtu| FrameLen(mtu.saturating_add(FRAME_OVERHEAD)))
    }
}

/// The loop: what is declared, and 5 ns a metre of cable each way. `None` if neither is known.
pub fn t_loop(declared: Option<Nanos>, cable: Option<Distance>) -> Option<Nanos> {
    // 5 ns/m each way are 10 ns for a metre, 1 for 10 cm.
    let cable = cable.map(|cable| Nanos(cable.0.div_ceil(10)));
    match (declared, cable) {
        (None, None) => None,
        (declared, cable) => {
            let sum = declared.unwrap_or_default().0;
            Some(Nanos(sum.saturating_add(cable.unwrap_or_default().0)))
        }
    }
}
