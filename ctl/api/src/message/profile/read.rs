//! The way back: from the answer to `show_profile` to the profile's data, so that a client judges
//! what is in force and not a file.

use super::{PgView, ProfilePort, ProfileReply, QueueView, WatchdogView};
use crate::doc::Finding;
use crate::message::{ClassMapsView, WredView};
use holdfast_core::ids::{
    Cos, PerCos, PerDscp, PerPcp, PerPg, PerPriority, PerQueue, PgId, PoolId, Priority,
    PrioritySet, QueueId, QueueSet,
};
use holdfast_core::profile::{
    ClassMaps, Limit, MarkAt, NotEct, PfcSpec, PgSpec, PortSpec, ProfileSpec, QueueSpec, Resume,
    Service, Trust, WatchdogAction, WatchdogSpec, WredSpec, Xoff, Xon,
};
use holdfast_core::units::{Alpha, BitRate, CellSize, Cells, Nanos, Prob16, Quanta};

impl ProfileReply {
    /// The profile as plain data.
    ///
    /// # Errors
    /// The first value that this release doesn't know, by its key: the switch is of another.
    pub fn spec(&self) -> Result<ProfileSpec, Finding> {
        let pools: Vec<&str> = self.pools.iter().map(|pool| pool.pool.as_str()).collect();
        let ports = self.ports.iter().map(|port| port_spec(port, &pools));
        Ok(ProfileSpec {
            name: self.name.clone(),
            cell: known(CellSize::new(self.cell_bytes), || "cell_bytes".to_owned())?,
            total: Cells(self.total),
            pools: self.pools.iter().map(|pool| (pool.pool.clone(), Cells(pool.size))).collect(),
            headroom_pool: Cells(self.headroom_pool),
            egress_shared: Cells(self.egress_shared),
            flood_limit: self.flood_limit,
            ports: ports.collect::<Result<_, _>>()?,
        })
    }
}

fn known<T>(value: Option<T>, key: impl FnOnce() -> String) -> Result<T, Finding> {
    value.ok_or_else(|| {
        let fix = "use a client of the same release as the switch";
        Finding::new(key(), "the switch's profile has a value here that isn't known", fix)
    })
}

fn rate(bits: u64, key: impl FnOnce() -> String) -> Result<BitRate, Finding> {
    known(BitRate::new(bits), key)
}

fn port_spec(port: &ProfilePort, pools: &[&str]) -> Result<PortSpec, Finding> {
    let key = |name: &str| format!("port.{}.{name}", port.port);
    let pgs = port.pgs.iter().map(|pg| pg_spec(pg, pools, &key(&format!("pg.{}", pg.pg))));
    let pgs = eight(pgs.collect::<Result<Vec<_>, _>>()?, || key("pgs"))?;
    let queues = port.queues.iter();
    let queues = queues.map(|queue| queue_spec(queue, &key(&format!("queue.{}", queue.queue))));
    let queues = eight(queues.collect::<Result<Vec<_>, _>>()?, || key("queues"))?;
    Ok(PortSpec {
        speed: rate(port.speed_bits_per_second, || key("speed"))?,
        mtu: port.mtu,
        maps: known(class_maps(&port.maps), || key("maps"))?,
        pgs: PerPg(pgs),
        queues: PerQueue(queues),
        pfc: PfcSpec {
            enabled: known(priorities(&port.pfc_enabled), || key("pfc.enabled"))?,
            quanta: Quanta(port.pause_quanta),
            resume: match port.resume.as_str() {
                "xon" => Resume::Xon,
                "expire" => Resume::Expire,
                _ => return known(None, || key("pfc.resume")),
            },
            link_pause: port.link_pause,
            rx_backlog_mark: port.rx_backlog_mark,
        },
        tx_inflight: port.tx_inflight,
        catch_up: Nanos(port.catch_up_ns),
        watchdog: port.watchdog.as_ref().map(|dog| watchdog(dog, key)).transpose()?,
    })
}

fn watchdog(view: &WatchdogView, key: impl Fn(&str) -> String) -> Result<WatchdogSpec, Finding> {
    let action = match view.action.as_str() {
        "drop" => Some(WatchdogAction::Drop),
        "forward" => Some(WatchdogAction::Forward),
        "alert" => Some(WatchdogAction::Alert),
        _ => None,
    };
    Ok(WatchdogSpec {
        detection_time: Nanos(view.detection_ns),
        restoration_time: Nanos(view.restoration_ns),
        action: known(action, || key("watchdog.action"))?,
        back_off: view.back_off,
    })
}

fn eight<T>(list: Vec<T>, key: impl FnOnce() -> String) -> Result<[T; 8], Finding> {
    known(list.try_into().ok(), key)
}

fn limit(cells: Option<u32>, alpha: Option<i8>) -> Option<Limit> {
    match (cells, alpha) {
        (Some(cells), None) => Some(Limit::Static(Cells(cells))),
        (None, Some(alpha)) => Alpha::new(alpha).map(Limit::Dynamic),
        _ => None,
    }
}

fn pg_spec(pg: &PgView, pools: &[&str], key: &str) -> Result<PgSpec, Finding> {
    let of = |name: &'static str| move || format!("{key}.{name}");
    let pool = pools.iter().position(|name| *name == pg.pool);
    let pool = pool.and_then(|number| PoolId::new(u8::try_from(number).ok()?));
    Ok(PgSpec {
        lossless: pg.lossless,
        guaranteed: Cells(pg.guaranteed),
        headroom: Cells(pg.headroom),
        headroom_pool: pg.headroom_pool,
        pool: known(pool, of("pool"))?,
        limit: known(limit(pg.limit, pg.alpha), of("limit"))?,
        xoff: pg.xoff.map_or(Xoff::AtLimit, |cells| Xoff::At(Cells(cells))),
        xon: match pg.xon_mode.as_str() {
            "offset" => Xon::Offset(Cells(pg.xon)),
            "absolute" => Xon::Absolute(Cells(pg.xon)),
            _ => return known(None, of("xon_mode")),
        },
        xon_floor: Cells(pg.xon_floor),
        priorities: known(priorities(&pg.priorities), of("priorities"))?,
    })
}

fn queue_spec(queue: &QueueView, key: &str) -> Result<QueueSpec, Finding> {
    let of = |name: &'static str| move || format!("{key}.{name}");
    let service = match queue.service.as_str() {
        "strict" => Some(Service::Strict),
        weight => weight.parse().ok().map(Service::Weight),
    };
    let limited = queue.limit.is_some() || queue.alpha.is_some();
    let bound = limited.then(|| known(limit(queue.limit, queue.alpha), of("limit")));
    Ok(QueueSpec {
        guarantee: Cells(queue.guarantee),
        limit: bound.transpose()?,
        wred: queue.wred.as_ref().map(|wred| known(wred_spec(wred), of("wred"))).transpose()?,
        service: known(service, of("service"))?,
        min_rate: queue.min_rate.map(|bits| rate(bits, of("min_rate"))).transpose()?,
        max_rate: queue.max_rate.map(|bits| rate(bits, of("max_rate"))).transpose()?,
    })
}

fn wred_spec(wred: &WredView) -> Option<WredSpec> {
    let units = (wred.pmax * f64::from(Prob16::ONE.units())).round();
    // Out of range it is no probability of ours; in range it is a whole number.
    let pmax = (0.0..=f64::from(Prob16::ONE.units())).contains(&units).then_some(units as u32)?;
    Some(WredSpec {
        kmin: Cells(wred.kmin),
        kmax: Cells(wred.kmax),
        pmax: Prob16::new(pmax)?,
        mark_at: match wred.mark_at.as_str() {
            "dequeue" => MarkAt::Dequeue,
            "enqueue" => MarkAt::Enqueue,
            _ => return None,
        },
        not_ect: match wred.not_ect.as_str() {
            "drop" => NotEct::Drop,
            "pass" => NotEct::Pass,
            _ => return None,
        },
        ewma_shift: wred.ewma_weight,
    })
}

fn priorities(numbers: &[u8]) -> Option<PrioritySet> {
    let add = |set: PrioritySet, number: &u8| Some(set.with(Priority::new(*number)?));
    numbers.iter().try_fold(PrioritySet(0), add)
}

fn queues(numbers: &[u8]) -> Option<QueueSet> {
    let add = |set: QueueSet, number: &u8| Some(set.or(QueueSet::only(QueueId::new(*number)?)));
    numbers.iter().try_fold(QueueSet::EMPTY, add)
}

/// A whole table of `numbers`, each made what it stands for.
fn table<T, N, const COUNT: usize>(numbers: &[N], made: fn(&N) -> Option<T>) -> Option<[T; COUNT]> {
    numbers.iter().map(made).collect::<Option<Vec<T>>>()?.try_into().ok()
}

fn class_maps(maps: &ClassMapsView) -> Option<ClassMaps> {
    let cos: fn(&u8) -> Option<Cos> = |number| Cos::new(*number);
    Some(ClassMaps {
        trust: match maps.trust.as_str() {
            "dscp" => Trust::Dscp,
            "pcp" => Trust::Pcp,
            "port" => Trust::Port,
            _ => return None,
        },
        default_cos: Cos::new(maps.default_cos)?,
        dscp_to_cos: PerDscp(table(&maps.dscp_to_cos, cos)?),
        pcp_to_cos: PerPcp(table(&maps.pcp_to_cos, cos)?),
        cos_to_pg: PerCos(table(&maps.cos_to_pg, |number| PgId::new(*number))?),
        cos_to_queue: PerCos(table(&maps.cos_to_queue, |number| QueueId::new(*number))?),
        priority_to_queues: PerPriority(table(&maps.priority_to_queues, |set| queues(set))?),
    })
}
