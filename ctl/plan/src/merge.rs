//! One port's sections: a key of `[port.NAME]` wins over the shared one.

use holdfast_api::profile_doc::{
    MapsDoc, PfcDoc, PgDoc, PortOverrideDoc, ProfileDoc, QueueDoc, SchedulerDoc, Slot, WatchdogDoc,
    WredDoc,
};
use std::collections::BTreeMap;

/// A document as one port sees it. Maps are kept in the order in which they apply.
pub(crate) struct PortDocs<'a> {
    doc: &'a ProfileDoc,
    over: Option<&'a PortOverrideDoc>,
}

macro_rules! prefer {
    ($over:ident, $shared:ident, $kind:ident { $($field:ident),* $(,)? }) => {
        $kind { $($field: $over.$field.clone().or_else(|| $shared.$field.clone()),)* }
    };
}

fn both<'a, T>(
    over: Option<&'a BTreeMap<Slot, T>>,
    shared: &'a BTreeMap<Slot, T>,
    slot: Slot,
) -> (Option<&'a T>, Option<&'a T>) {
    (over.and_then(|table| table.get(&slot)), shared.get(&slot))
}

impl<'a> PortDocs<'a> {
    pub(crate) fn new(doc: &'a ProfileDoc, port: &str) -> Self {
        Self { doc, over: doc.ports.get(port) }
    }

    /// The shared maps, then the port's.
    pub(crate) fn maps(&self) -> impl Iterator<Item = &'a MapsDoc> {
        let over = self.over.map(|over| &over.maps);
        std::iter::once(&self.doc.maps).chain(over)
    }

    pub(crate) fn pg(&self, slot: Slot) -> PgDoc {
        let (over, shared) = both(self.over.map(|over| &over.pgs), &self.doc.pgs, slot);
        let (empty_over, empty_shared) = (PgDoc::default(), PgDoc::default());
        let (over, shared) = (over.unwrap_or(&empty_over), shared.unwrap_or(&empty_shared));
        let mut merged = prefer!(
            over,
            shared,
            PgDoc {
                lossless,
                guaranteed,
                headroom,
                headroom_pool,
                pool,
                limit,
                alpha,
                xoff,
                xon,
                xon_mode,
                xon_floor,
                priorities,
            }
        );
        // The two exclude each other: the port's choice of one drops the shared other.
        if over.limit.is_some() || over.alpha.is_some() {
            (merged.limit, merged.alpha) = (over.limit, over.alpha);
        }
        merged
    }

    pub(crate) fn queue(&self, slot: Slot) -> QueueDoc {
        let (over, shared) = both(self.over.map(|over| &over.queues), &self.doc.queues, slot);
        let (empty_over, empty_shared) = (QueueDoc::default(), QueueDoc::default());
        let (over, shared) = (over.unwrap_or(&empty_over), shared.unwrap_or(&empty_shared));
        let mut merged = prefer!(
            over,
            shared,
            QueueDoc { guarantee, limit, alpha, strict, weight, min_rate, max_rate, wred }
        );
        if over.limit.is_some() || over.alpha.is_some() {
            (merged.limit, merged.alpha) = (over.limit, over.alpha);
        }
        if over.strict.is_some() || over.weight.is_some() {
            (merged.strict, merged.weight) = (over.strict, over.weight);
        }
        if let (Some(over), Some(shared)) = (&over.wred, &shared.wred) {
            merged.wred = Some(prefer!(
                over,
                shared,
                WredDoc { off, kmin, kmax, pmax, mark_at, not_ect, ewma_weight }
            ));
        }
        merged
    }

    pub(crate) fn pfc(&self) -> PfcDoc {
        let shared = &self.doc.pfc;
        self.over.map_or_else(
            || shared.clone(),
            |over| {
                let over = &over.pfc;
                prefer!(over, shared, PfcDoc { enabled, pause_quanta, resume, rx_backlog_mark })
            },
        )
    }

    pub(crate) fn scheduler(&self) -> SchedulerDoc {
        let shared = &self.doc.scheduler;
        self.over.map_or_else(
            || shared.clone(),
            |over| {
                let over = &over.scheduler;
                prefer!(over, shared, SchedulerDoc { tx_inflight, catch_up })
            },
        )
    }

    /// `None` where no section asks for it.
    pub(crate) fn watchdog(&self) -> Option<WatchdogDoc> {
        let over = self.over.and_then(|over| over.watchdog);
        let (Some(over), Some(shared)) = (over, self.doc.watchdog) else {
            return over.or(self.doc.watchdog);
        };
        let both = WatchdogDoc {
            enabled: over.enabled.or(shared.enabled),
            detection_time: over.detection_time.or(shared.detection_time),
            restoration_time: over.restoration_time.or(shared.restoration_time),
            action: over.action.or(shared.action),
            back_off: over.back_off.or(shared.back_off),
        };
        Some(both)
    }
}
