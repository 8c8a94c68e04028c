//! Arguments of `holdfast plan`.

use crate::CommandError;
use clap::{Args, ValueEnum};
use holdfast_api::amount::{ByteAmount, CellAmount, Distance, Rate, Span};
use holdfast_core::units::{Alpha, Bytes, CellSize, Cells, FrameLen};
use holdfast_plan::headroom::{Formula, Given, Share};
use holdfast_plan::propose::Request;
use std::path::PathBuf;

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum FormulaName {
    Ac5p,
    Exact,
    Cpu,
    Ieee,
    Sonic,
    Mlx5,
}

impl From<FormulaName> for Formula {
    fn from(name: FormulaName) -> Self {
        match name {
            FormulaName::Ac5p => Self::Ac5p,
            FormulaName::Exact => Self::Exact,
            FormulaName::Cpu => Self::Cpu,
            FormulaName::Ieee => Self::Ieee,
            FormulaName::Sonic => Self::Sonic,
            FormulaName::Mlx5 => Self::Mlx5,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct PlanArguments {
    /// How Headroom is computed.
    #[arg(long, default_value = "ac5p")]
    pub formula: FormulaName,
    /// The link's speed: 400G, 25G.
    #[arg(long)]
    pub speed: Rate,
    /// From our XOFF to the last frame that was under way: 3us. For ac5p and exact.
    #[arg(long = "loop", value_name = "TIME")]
    pub t_loop: Option<Span>,
    /// Length of the cable: 40m. For ieee, sonic, mlx5; ac5p and exact add 5 ns/m each way to
    /// the loop.
    #[arg(long, value_name = "LENGTH")]
    pub cable: Option<Distance>,
    /// The ports' MTU. Default: 9216 and the flat 20 KB of ac5p; sonic and mlx5: 9100.
    #[arg(long, value_parser = clap::value_parser!(u16).range(68..))]
    pub mtu: Option<u16>,
    /// The smallest lossless frame without FCS: 1086. For exact, and stated in the profile.
    #[arg(long, value_name = "BYTES", default_value = "1086")]
    pub smallest_frame: ByteAmount,
    /// exact: a largest frame may be leaving when the PFC frame wants to.
    #[arg(long)]
    pub reverse_frame: bool,
    /// sonic: share of small packets by bytes: 50%.
    #[arg(long, value_name = "PERCENT", default_value = "100%")]
    pub small_share: Share,
    /// sonic: MTU of lossless traffic.
    #[arg(long, value_name = "BYTES", default_value_t = 1024)]
    pub lossless_mtu: u16,
    /// sonic: bytes that one gearbox holds.
    #[arg(long, value_name = "BYTES", default_value = "0")]
    pub gearbox: ByteAmount,
    /// sonic: lanes of the port; 8 change SONiC's xon and profile size, not the need.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=8))]
    pub lanes: u8,
    /// sonic: the ASIC's pipeline latency: 18KiB. Without it SONiC's xon isn't shown.
    #[arg(long, value_name = "BYTES")]
    pub pipeline_latency: Option<ByteAmount>,
    /// ieee: transmit plus receive delay of one end's interface: 500ns.
    #[arg(long, value_name = "TIME", default_value = "0ns")]
    pub interface_delay: Span,
    /// cpu: from the charge that decides XOFF to its frame on the wire.
    #[arg(long, value_name = "TIME", default_value = "100us")]
    pub xoff_reaction: Span,
    /// cpu: RX backlog in frames that pauses.
    #[arg(long, value_name = "FRAMES", default_value_t = 256)]
    pub rx_backlog_mark: u32,
    /// Bytes of a cell, 64..4096.
    #[arg(long, value_name = "BYTES", default_value_t = 256)]
    pub cell: u32,
    /// What one PG may borrow, as a static limit: 12000, 3MiB. Default: by alpha and pool.
    #[arg(long, value_name = "CELLS", conflicts_with = "alpha")]
    pub q_limit: Option<CellAmount>,
    /// Dynamic limit 2^N times the free pool. Default 0 from 400G on and with cpu, -1 from 200G
    /// on, else -2.
    #[arg(long, allow_hyphen_values = true, value_name = "N")]
    pub alpha: Option<i8>,
    /// The lossless pool. Default 6000000B; cpu: what Headroom asks for.
    #[arg(long, value_name = "CELLS")]
    pub pool: Option<CellAmount>,
    /// The lossy pool. Default 1000000B; cpu: a quarter of the other.
    #[arg(long, value_name = "CELLS")]
    pub lossy_pool: Option<CellAmount>,
    /// Name of the profile that --toml writes.
    #[arg(long, value_name = "NAME", default_value = "planned")]
    pub profile: String,
    /// Where that profile fits.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub description: String,
    /// Show all formulas side by side.
    #[arg(long)]
    pub compare: bool,
    /// Write the whole profile, to the output if no FILE is named.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub toml: Option<PathBuf>,
}

impl PlanArguments {
    /// What is to be planned.
    pub(super) fn request(&self) -> Result<Request, CommandError> {
        let cell = CellSize::new(self.cell)
            .ok_or_else(|| usage(format!("--cell {}: out of range; use 64..4096", self.cell)))?;
        let given = Given {
            cell,
            t_loop: self.t_loop.map(|span| span.0),
            cable: self.cable,
            mtu: self.mtu,
            smallest: smallest(self.smallest_frame)?,
            reverse_frame: self.reverse_frame,
            xoff_reaction: self.xoff_reaction.0,
            rx_backlog_mark: self.rx_backlog_mark,
            interface_delay: self.interface_delay.0,
            small_share: self.small_share,
            lossless_mtu: self.lossless_mtu,
            gearbox: Bytes(self.gearbox.0),
            lanes: self.lanes,
            pipeline_latency: self.pipeline_latency.map(|bytes| Bytes(bytes.0)),
            ..Given::new(self.speed.0)
        };
        let formula = Formula::from(self.formula);
        if let Some(what) = formula.lacks(&given) {
            let text = format!("formula {} needs {what}", formula.name());
            return Err(usage(format!("{text}; give --loop 3us or --cable 40m")));
        }
        let alpha = |log2| {
            Alpha::new(log2)
                .ok_or_else(|| usage(format!("--alpha {log2}: out of range; use -8..7")))
        };
        Ok(Request {
            name: self.profile.clone(),
            description: self.description.clone(),
            q_limit: cells("--q-limit", self.q_limit, cell)?,
            alpha: self.alpha.map(alpha).transpose()?,
            pool: cells("--pool", self.pool, cell)?,
            lossy_pool: cells("--lossy-pool", self.lossy_pool, cell)?,
            ..Request::new(formula, given)
        })
    }
}

const fn usage(text: String) -> CommandError {
    CommandError::Usage(text)
}

fn smallest(bytes: ByteAmount) -> Result<FrameLen, CommandError> {
    let length = u16::try_from(bytes.0).ok().filter(|length| *length >= 60);
    length.map(FrameLen).ok_or_else(|| {
        usage(format!("--smallest-frame {}: no length of a frame; use 60..65535", bytes.0))
    })
}

/// An amount that percentages have no meaning for.
fn cells(
    option: &str,
    amount: Option<CellAmount>,
    cell: CellSize,
) -> Result<Option<Cells>, CommandError> {
    let Some(amount) = amount else { return Ok(None) };
    let cells = amount.to_cells(cell, None);
    cells.map(Some).ok_or_else(|| {
        usage(format!("{option} {amount}: there is nothing it is a part of; write cells or bytes"))
    })
}
