//! What makes a profile valid: the budget of SPEC 3.1 in both views, ranges and relations.

use super::*;
use thiserror::Error;

/// Why a profile can't run. It is refused as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProfileError {
    /// The ingress view of SPEC 3.1 doesn't fit.
    #[error(
        "ingress parts need {needed} cells (Guaranteed {guaranteed} + Headroom {headroom} + \
         pools {pools}), the buffer has {total}; make a pool smaller or the total larger"
    )]
    IngressBudget {
        /// Sum of the parts.
        needed: u64,
        /// Sum of PG Guaranteed.
        guaranteed: u64,
        /// Sum of PG Headroom, the shared headroom pool included.
        headroom: u64,
        /// Sum of Service pools.
        pools: u64,
        /// Cells there are.
        total: u32,
    },
    /// The egress view of SPEC 3.1 doesn't fit.
    #[error(
        "egress parts need {needed} cells (guarantees {guarantees} + shared {shared}), the \
         buffer has {total}; make egress_shared smaller or the total larger"
    )]
    EgressBudget {
        /// Sum of the parts.
        needed: u64,
        /// Sum of queue guarantees.
        guarantees: u64,
        /// What queues share.
        shared: u32,
        /// Cells there are.
        total: u32,
    },
    /// A value outside its range.
    #[error("{what} is {value}, the limit is {limit}")]
    OutOfRange {
        /// Which value, with its port and PG or queue.
        what: String,
        /// The value.
        value: u64,
        /// The limit.
        limit: u64,
    },
    /// Two values that contradict each other.
    #[error("{what}: {why}")]
    Contradiction {
        /// Where, as port and PG or queue.
        what: String,
        /// What contradicts what, with the numbers, and what to do.
        why: String,
    },
}

pub(super) fn check(spec: &ProfileSpec) -> Result<(), ProfileError> {
    at_most("pools", spec.pools.len() as u64, MAX_POOLS as u64)?;
    at_most("ports", spec.ports.len() as u64, crate::ids::MAX_PORTS as u64)?;
    at_most("flood_limit", u64::from(spec.flood_limit), 1 << 20)?;
    at_most("total cells", u64::from(spec.total.0), u64::from(crate::frame::MAX_CHUNKS))?;
    budget(spec)?;
    for (number, port) in spec.ports.iter().enumerate() {
        check_port(spec, number, port)?;
    }
    Ok(())
}

fn at_most(what: &str, value: u64, limit: u64) -> Result<(), ProfileError> {
    if value <= limit {
        Ok(())
    } else {
        Err(ProfileError::OutOfRange { what: what.to_owned(), value, limit })
    }
}

fn contradiction(what: String, why: String) -> Result<(), ProfileError> {
    Err(ProfileError::Contradiction { what, why })
}

/// SPEC 3.1: two views of one memory.
fn budget(spec: &ProfileSpec) -> Result<(), ProfileError> {
    let pgs = || spec.ports.iter().flat_map(|port| port.pgs.0.iter());
    let guaranteed: u64 = pgs().map(|pg| u64::from(pg.guaranteed.0)).sum();
    let private: u64 =
        pgs().filter(|pg| !pg.headroom_pool).map(|pg| u64::from(pg.headroom.0)).sum();
    let headroom = private + u64::from(spec.headroom_pool.0);
    let pools: u64 = spec.pools.iter().map(|(_, size)| u64::from(size.0)).sum();
    let needed = guaranteed + headroom + pools;
    let total = spec.total.0;
    if needed > u64::from(total) {
        return Err(ProfileError::IngressBudget { needed, guaranteed, headroom, pools, total });
    }
    let queues = || spec.ports.iter().flat_map(|port| port.queues.0.iter());
    let guarantees: u64 = queues().map(|queue| u64::from(queue.guarantee.0)).sum();
    let shared = spec.egress_shared.0;
    let needed = guarantees + u64::from(shared);
    if needed > u64::from(total) {
        return Err(ProfileError::EgressBudget { needed, guarantees, shared, total });
    }
    Ok(())
}

fn check_port(spec: &ProfileSpec, number: usize, port: &PortSpec) -> Result<(), ProfileError> {
    let longest = u64::from(crate::frame::MAX_FRAME_LEN - FRAME_OVERHEAD);
    at_most(&format!("port {number}: mtu"), u64::from(port.mtu), longest)?;
    if port.mtu < 68 {
        return contradiction(
            format!("port {number}: mtu"),
            format!("{} is below 68, the least IPv4 allows (RFC 791)", port.mtu),
        );
    }
    if port.pfc.link_pause && !port.pfc.enabled.is_empty() {
        return contradiction(
            format!("port {number}: pfc"),
            "link_pause and PFC exclude each other; turn one of them off".to_owned(),
        );
    }
    if port.pfc.quanta == Quanta(0) && !port.pfc.enabled.is_empty() {
        return contradiction(
            format!("port {number}: pause_quanta"),
            "0 would resume instead of pause; use 1 to 65535".to_owned(),
        );
    }
    for (pg, account) in port.pgs.iter() {
        check_pg(spec, &format!("port {number} pg {pg}"), account)?;
    }
    for (queue, entry) in port.queues.iter() {
        check_queue(&format!("port {number} queue {queue}"), entry)?;
    }
    let least = 2 * u32::from(port.largest_frame());
    if port.tx_inflight < least {
        return contradiction(
            format!("port {number}: tx_inflight"),
            format!("{} bytes hold less than two largest frames ({least})", port.tx_inflight),
        );
    }
    Ok(())
}

fn check_pg(spec: &ProfileSpec, what: &str, pg: &PgSpec) -> Result<(), ProfileError> {
    let most = u64::from(MAX_SEGMENT_CELLS);
    at_most(&format!("{what}: guaranteed"), u64::from(pg.guaranteed.0), most)?;
    at_most(&format!("{what}: headroom"), u64::from(pg.headroom.0), most)?;
    if let Limit::Static(limit) = pg.limit {
        at_most(&format!("{what}: limit"), u64::from(limit.0), most)?;
    }
    let Some((_, pool)) = spec.pools.get(pg.pool.index()) else {
        let pools = spec.pools.len();
        return contradiction(format!("{what}: pool"), format!("there are only {pools} pools"));
    };
    at_most(&format!("{what}: its pool"), u64::from(pool.0), most)?;
    if !pg.lossless {
        if pg.headroom != Cells::ZERO {
            return contradiction(
                format!("{what}: headroom"),
                format!("{} on a lossy PG; set it to 0 or lossless = true", pg.headroom),
            );
        }
        return Ok(());
    }
    let xon = match pg.xon {
        Xon::Offset(cells) | Xon::Absolute(cells) => cells,
    };
    if let Xoff::At(xoff) = pg.xoff {
        at_most(&format!("{what}: xoff"), u64::from(xoff.0), most)?;
        if xon == Cells::ZERO || xon >= xoff {
            return contradiction(
                format!("{what}: xon"),
                format!("{xon} must lie between 1 and XOFF ({xoff}) - 1"),
            );
        }
    }
    at_most(&format!("{what}: xon"), u64::from(xon.0), most)?;
    at_most(&format!("{what}: xon_floor"), u64::from(pg.xon_floor.0), most)
}

fn check_queue(what: &str, queue: &QueueSpec) -> Result<(), ProfileError> {
    if queue.service == Service::Weight(0) {
        return contradiction(
            format!("{what}: weight"),
            "0 would never be served; use at least 1".to_owned(),
        );
    }
    if let (Some(least), Some(most)) = (queue.min_rate, queue.max_rate) {
        if least > most {
            let (least, most) = (least.bits_per_second(), most.bits_per_second());
            return contradiction(
                format!("{what}: min_rate"),
                format!("{least} bit/s is above max_rate {most} bit/s"),
            );
        }
    }
    let Some(wred) = queue.wred else { return Ok(()) };
    at_most(&format!("{what}: ewma_weight exponent"), u64::from(wred.ewma_shift), 15)?;
    if wred.kmin > wred.kmax {
        return contradiction(
            format!("{what}: kmin"),
            format!("{} is above kmax {}", wred.kmin, wred.kmax),
        );
    }
    Ok(())
}
