//! BUFFER_POOL, and the buffer profiles of PGs.

use super::tables::{owned, Tables};
use super::ExportInput;
use holdfast_api::doc::Finding;
use holdfast_core::profile::{Limit, PgSpec, ProfileSpec, Xoff, Xon};
use holdfast_core::units::{CellSize, Cells};

/// The egress pools that queues refer to.
#[derive(Debug)]
pub(super) struct Pools {
    /// That of lossy queues: what queues share.
    pub lossy: String,
    /// That of lossless ones.
    pub lossless: String,
    /// As large as all there is: lossless queues have no limit.
    pub all: Cells,
}

/// Cells as SONiC writes sizes.
pub(super) fn bytes(cells: Cells, cell: CellSize) -> String {
    (u64::from(cells.0) * u64::from(cell.bytes())).to_string()
}

/// The threshold of a limit.
pub(super) fn threshold(limit: Limit, cell: CellSize) -> (&'static str, String) {
    match limit {
        Limit::Static(cells) => ("static_th", bytes(cells, cell)),
        Limit::Dynamic(alpha) => ("dynamic_th", alpha.log2().to_string()),
    }
}

/// Writes the pools.
pub(super) fn pools(
    input: &ExportInput<'_>,
    tables: &mut Tables,
    wrong: &mut Vec<Finding>,
) -> Pools {
    let spec = input.plan.spec();
    let sharing = sharing_pool(spec, wrong);
    for (number, (name, size)) in spec.pools.iter().enumerate() {
        let mut fields = vec![
            ("type", "ingress".to_owned()),
            ("mode", "dynamic".to_owned()),
            ("size", bytes(*size, spec.cell)),
        ];
        if sharing == Some(number) {
            fields.push(("xoff", bytes(spec.headroom_pool, spec.cell)));
        }
        tables.row("BUFFER_POOL", name, owned(fields));
    }
    let free = |name: &str| {
        let mut name = name.to_owned();
        while spec.pools.iter().any(|(pool, _)| *pool == name) {
            name.push('_');
        }
        name
    };
    let (lossy, lossless) = (free("egress_lossy_pool"), free("egress_lossless_pool"));
    for (name, mode, size) in
        [(&lossy, "dynamic", spec.egress_shared), (&lossless, "static", spec.total)]
    {
        let fields = vec![
            ("type", "egress".to_owned()),
            ("mode", mode.to_owned()),
            ("size", bytes(size, spec.cell)),
        ];
        tables.row("BUFFER_POOL", name, owned(fields));
    }
    Pools { lossy, lossless, all: spec.total }
}

/// The pool whose lossless PGs share Headroom: in SONiC it is a property of one pool, and of all
/// lossless PGs of it.
fn sharing_pool(spec: &ProfileSpec, wrong: &mut Vec<Finding>) -> Option<usize> {
    let names: Vec<&PgSpec> =
        spec.ports.iter().flat_map(|port| port.pgs.0.iter()).filter(|pg| pg.lossless).collect();
    let sharing = names.iter().find(|pg| pg.headroom_pool).map(|pg| pg.pool.index());
    let is_of = |pg: &PgSpec| Some(pg.pool.index()) == sharing;
    if spec.headroom_pool == Cells::ZERO {
        if sharing.is_some() {
            let message = "PGs share a headroom pool of no cells, which SONiC can't say";
            let fix = "set buffer.headroom_pool, or headroom_pool = false";
            wrong.push(Finding::new("buffer.headroom_pool", message, fix));
        }
        return None;
    }
    if sharing.is_none() {
        let message = "no PG draws from it, and in SONiC all lossless PGs of its pool would";
        let fix = "remove it, or set headroom_pool = true at the lossless PGs";
        wrong.push(Finding::new("buffer.headroom_pool", message, fix));
    }
    if names.iter().any(|pg| is_of(pg) != pg.headroom_pool) {
        let message = "in SONiC all lossless PGs of one pool share Headroom, and no others";
        let fix = "set headroom_pool alike at the lossless PGs of each pool";
        wrong.push(Finding::new("buffer.headroom_pool", message, fix));
    }
    sharing
}

/// The buffer profile of a PG.
pub(super) fn pg(
    key: &str,
    pg: &PgSpec,
    spec: &ProfileSpec,
    tables: &mut Tables,
    wrong: &mut Vec<Finding>,
) -> String {
    let cell = spec.cell;
    let pool = spec.pools.get(pg.pool.index()).map(|(name, _)| name.clone()).unwrap_or_default();
    let mut fields =
        vec![("pool", pool), ("size", bytes(pg.guaranteed, cell)), threshold(pg.limit, cell)];
    if !pg.lossless {
        return tables.named("BUFFER_PROFILE", "ingress_lossy_profile", owned(fields));
    }
    if let Xoff::At(xoff) = pg.xoff {
        let message = "SONiC pauses at the limit, it has no watermark below";
        let fix = "set xoff = \"limit\", and xon for a resume below the limit";
        wrong.push(Finding::new(format!("{key}.xoff"), message, fix).numbers(xoff.0, "limit"));
    }
    fields.push(("xoff", bytes(pg.headroom, cell)));
    match pg.xon {
        Xon::Offset(offset) => {
            fields.push(("xon", bytes(pg.xon_floor, cell)));
            fields.push(("xon_offset", bytes(offset, cell)));
        }
        Xon::Absolute(level) => {
            fields.push(("xon", bytes(level, cell)));
            if pg.xon_floor != Cells::ZERO {
                let message = "SONiC has one level to resume at: xon and xon_floor are two";
                let fix = "remove xon_floor, or set xon_mode = \"offset\"";
                wrong.push(Finding::new(format!("{key}.xon_floor"), message, fix));
            }
            if pg.guaranteed == level.saturating_add(pg.headroom) {
                let message = "a size of xon + headroom would be read as holding the Headroom";
                let fix = "make guaranteed one cell larger";
                wrong.push(Finding::new(format!("{key}.guaranteed"), message, fix));
            }
        }
    }
    tables.named("BUFFER_PROFILE", "ingress_lossless_profile", owned(fields))
}
