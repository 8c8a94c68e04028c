//! Many ports as one document: what most of them have is shared, the rest is said per port.

use holdfast_api::profile_doc::{
    PgDoc, PortOverrideDoc, ProfileDoc, QueueDoc, WatchdogDoc, WredDoc,
};

/// The value that most of `all` have, the earliest of several; `None` of nothing.
fn usual<T: PartialEq + Clone>(all: &[T]) -> Option<T> {
    let mut counts: Vec<(&T, usize)> = Vec::new();
    for value in all {
        match counts.iter_mut().find(|(known, _)| *known == value) {
            Some((_, count)) => *count += 1,
            None => counts.push((value, 1)),
        }
    }
    let most = counts.iter().map(|(_, count)| *count).max()?;
    counts.into_iter().find(|(_, count)| *count == most).map(|(value, _)| value.clone())
}

/// Puts `ports`, each with every key named, into `doc`.
pub(super) fn share(doc: &mut ProfileDoc, ports: Vec<(String, PortOverrideDoc)>) {
    let mut over: Vec<PortOverrideDoc> = ports.iter().map(|_| PortOverrideDoc::default()).collect();
    let of = |pick: fn(&PortOverrideDoc) -> _| -> Vec<_> {
        ports.iter().map(|(_, port)| pick(port)).collect()
    };
    let maps = of(|port| port.maps.clone());
    doc.maps = usual(&maps).unwrap_or_default();
    let pfc: Vec<_> = ports.iter().map(|(_, port)| port.pfc.clone()).collect();
    doc.pfc = usual(&pfc).unwrap_or_default();
    for ((over, maps), pfc) in over.iter_mut().zip(maps).zip(pfc) {
        if maps != doc.maps {
            over.maps = maps;
        }
        if pfc != doc.pfc {
            over.pfc = pfc;
        }
    }
    share_pgs(doc, &ports, &mut over);
    share_queues(doc, &ports, &mut over);
    let off = WatchdogDoc { enabled: Some(false), ..WatchdogDoc::default() };
    let watchdogs: Vec<_> = ports.iter().map(|(_, port)| port.watchdog).collect();
    if watchdogs.iter().any(Option::is_some) {
        doc.watchdog = usual(&watchdogs).flatten();
        for (over, watchdog) in over.iter_mut().zip(watchdogs) {
            if watchdog != doc.watchdog {
                over.watchdog = Some(watchdog.unwrap_or(off));
            }
        }
    }
    let named = ports.into_iter().map(|(name, _)| name).zip(over);
    doc.ports = named.filter(|(_, over)| *over != PortOverrideDoc::default()).collect();
}

fn share_pgs(
    doc: &mut ProfileDoc,
    ports: &[(String, PortOverrideDoc)],
    over: &mut [PortOverrideDoc],
) {
    let Some((_, first)) = ports.first() else { return };
    for slot in first.pgs.keys().copied() {
        let all: Vec<PgDoc> = ports
            .iter()
            .map(|(_, port)| port.pgs.get(&slot).cloned().unwrap_or_default())
            .collect();
        let Some(shared) = usual(&all) else { continue };
        let mut alike = true;
        for (over, pg) in over.iter_mut().zip(all).filter(|(_, pg)| *pg != shared) {
            over.pgs.insert(slot, pg);
            alike = false;
        }
        doc.pgs.insert(slot, if alike { without_nothing(shared) } else { shared });
    }
}

/// Keys that say what their absence says are needed only against a shared section.
fn without_nothing(pg: PgDoc) -> PgDoc {
    let lossless = pg.lossless == Some(true);
    let zero = Some(holdfast_api::amount::CellAmount::Cells(0));
    PgDoc {
        guaranteed: pg.guaranteed.filter(|_| pg.guaranteed != zero),
        headroom: pg.headroom.filter(|_| lossless),
        headroom_pool: pg.headroom_pool.filter(|shared| *shared),
        xoff: pg.xoff.filter(|_| lossless),
        xon: pg.xon.filter(|_| lossless),
        xon_mode: pg.xon_mode.filter(|mode| *mode != Default::default()),
        xon_floor: pg.xon_floor.filter(|_| pg.xon_floor != zero),
        priorities: pg.priorities.filter(|list| !list.is_empty()),
        ..pg
    }
}

fn share_queues(
    doc: &mut ProfileDoc,
    ports: &[(String, PortOverrideDoc)],
    over: &mut [PortOverrideDoc],
) {
    let Some((_, first)) = ports.first() else { return };
    for slot in first.queues.keys().copied() {
        let all: Vec<QueueDoc> = ports
            .iter()
            .map(|(_, port)| port.queues.get(&slot).cloned().unwrap_or_default())
            .collect();
        let Some(mut shared) = usual(&all) else { continue };
        // A port can't say that it has none of these: they are shared only by all.
        let everywhere = |has: fn(&QueueDoc) -> bool| all.iter().all(has);
        if !everywhere(|queue| queue.min_rate.is_some()) {
            shared.min_rate = None;
        }
        if !everywhere(|queue| queue.max_rate.is_some()) {
            shared.max_rate = None;
        }
        if !everywhere(|queue| queue.limit.is_some() || queue.alpha.is_some()) {
            (shared.limit, shared.alpha) = (None, None);
        }
        if !everywhere(|queue| queue.wred.as_ref().is_some_and(|line| line.not_ect.is_some())) {
            shared.wred = shared.wred.map(|line| WredDoc { not_ect: None, ..line });
        }
        let mut alike = true;
        for (over, queue) in over.iter_mut().zip(all).filter(|(_, queue)| *queue != shared) {
            over.queues.insert(slot, queue);
            alike = false;
        }
        if alike {
            shared.wred = shared.wred.filter(|line| line.off != Some(true));
            shared.wred = shared.wred.map(|line| WredDoc { off: None, ..line });
            let zero = Some(holdfast_api::amount::CellAmount::Cells(0));
            shared.guarantee = shared.guarantee.filter(|_| shared.guarantee != zero);
        }
        doc.queues.insert(slot, shared);
    }
}
