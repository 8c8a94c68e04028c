//! One egress queue of a document in cells, and its marking line.

use crate::amounts::{cells, limit, q_limit};
use holdfast_api::amount::CellAmount;
use holdfast_api::doc::Finding;
use holdfast_api::profile_doc::{MarkAtDoc, NotEctDoc, QueueDoc, WredDoc};
use holdfast_core::profile::{Limit, MarkAt, NotEct, QueueSpec, Service, WredSpec};
use holdfast_core::units::{Alpha, CellSize, Cells, Prob16};

/// The largest weight: beyond it a queue's turn would be longer than a second at 1G.
const MAX_WEIGHT: u16 = 1_000;
/// Default weights, as deployed: SONiC's scheduler.1 and scheduler.0.
const WEIGHT_LOSSLESS: u16 = 15;
const WEIGHT_LOSSY: u16 = 14;
/// Default of Pmax (AC5P).
pub(crate) const PMAX: f64 = 0.2;

/// What decides a queue's defaults.
pub(crate) struct Standing {
    /// A lossless PG feeds it.
    pub lossless: bool,
    /// The set of map defaults has it strict.
    pub strict: bool,
    pub cell: CellSize,
    /// What queues share.
    pub shared: Cells,
}

/// The queue whose keys are below `key`.
pub(crate) fn resolve(key: &str, doc: &QueueDoc, at: &Standing) -> Result<QueueSpec, Finding> {
    let mut bound = limit(key, doc.limit, doc.alpha, at.cell)?;
    // AC5P: alpha 2^1 for lossy queues; ingress is the only gate of lossless frames (SPEC 3.5).
    if bound.is_none() && !at.lossless {
        bound = Alpha::new(1).map(Limit::Dynamic);
    }
    let of = bound.map(|limit| q_limit(limit, at.shared));
    let wred = match &doc.wred {
        Some(line) if line.off != Some(true) => Some(wred(&format!("{key}.wred"), line, at, of)?),
        _ => None,
    };
    Ok(QueueSpec {
        guarantee: guarantee(key, doc, at.cell)?,
        limit: bound,
        wred,
        service: service(key, doc, at)?,
        min_rate: doc.min_rate.map(|rate| rate.0),
        max_rate: doc.max_rate.map(|rate| rate.0),
    })
}

/// The guarantee alone: what queues share, and so their Q_limit, is known only after it.
pub(crate) fn guarantee(key: &str, doc: &QueueDoc, cell: CellSize) -> Result<Cells, Finding> {
    match doc.guarantee {
        Some(amount) => cells(&format!("{key}.guarantee"), amount, cell, None),
        None => Ok(Cells::ZERO),
    }
}

fn service(key: &str, doc: &QueueDoc, at: &Standing) -> Result<Service, Finding> {
    match (doc.strict, doc.weight) {
        (Some(true), Some(_)) => Err(Finding::new(
            format!("{key}.weight"),
            "a strict queue has no weight",
            "remove weight, or set strict = false",
        )),
        (Some(true), None) => Ok(Service::Strict),
        // 0 is the linter's to refuse: Q03.
        (_, Some(weight)) if weight > MAX_WEIGHT => {
            let fix = "use 1..1000, or strict = true";
            let finding = Finding::new(format!("{key}.weight"), "out of range", fix);
            Err(finding.numbers(weight, format!("1..{MAX_WEIGHT}")))
        }
        (_, Some(weight)) => Ok(Service::Weight(weight)),
        (None, None) if at.strict => Ok(Service::Strict),
        _ if at.lossless => Ok(Service::Weight(WEIGHT_LOSSLESS)),
        _ => Ok(Service::Weight(WEIGHT_LOSSY)),
    }
}

fn wred(key: &str, doc: &WredDoc, at: &Standing, of: Option<Cells>) -> Result<WredSpec, Finding> {
    let level = |name: &str, amount: Option<CellAmount>| {
        let key = format!("{key}.{name}");
        match amount {
            Some(amount) => cells(&key, amount, at.cell, of),
            None => {
                let fix = format!("add {name}, or remove the section");
                Err(Finding::new(key, format!("a marking line needs {name}"), fix))
            }
        }
    };
    Ok(WredSpec {
        kmin: level("kmin", doc.kmin)?,
        kmax: level("kmax", doc.kmax)?,
        pmax: probability(&format!("{key}.pmax"), doc.pmax.unwrap_or(PMAX))?,
        mark_at: mark_at(doc.mark_at.unwrap_or_default()),
        not_ect: match doc.not_ect {
            // SPEC 5: lossless queues always pass.
            Some(NotEctDoc::Drop) if at.lossless => {
                let message = "a lossless queue never drops frames without ECT";
                let fix = "write \"pass\", or remove the key";
                return Err(Finding::new(format!("{key}.not_ect"), message, fix));
            }
            None if at.lossless => NotEct::Pass,
            other => not_ect(other.unwrap_or_default()),
        },
        ewma_shift: ewma(&format!("{key}.ewma_weight"), doc.ewma_weight.unwrap_or(0))?,
    })
}

/// A probability of a document as the core has it.
pub(crate) fn probability(key: &str, pmax: f64) -> Result<Prob16, Finding> {
    let valid = (0.0..=1.0).contains(&pmax).then(|| Prob16::new((pmax * 65_536.0).round() as u32));
    valid.flatten().ok_or_else(|| {
        let fix = "write a probability such as 0.2";
        Finding::new(key, "not a probability", fix).numbers(pmax, "0..1")
    })
}

/// The exponent of the average's weight.
pub(crate) fn ewma(key: &str, exponent: u8) -> Result<u8, Finding> {
    if exponent <= 15 {
        return Ok(exponent);
    }
    let fix = "use the exponent n of the weight 1/2^n, 0 for none";
    Err(Finding::new(key, "out of range", fix).numbers(exponent, "0..15"))
}

pub(crate) const fn mark_at(doc: MarkAtDoc) -> MarkAt {
    match doc {
        MarkAtDoc::Dequeue => MarkAt::Dequeue,
        MarkAtDoc::Enqueue => MarkAt::Enqueue,
    }
}

pub(crate) const fn not_ect(doc: NotEctDoc) -> NotEct {
    match doc {
        NotEctDoc::Drop => NotEct::Drop,
        NotEctDoc::Pass => NotEct::Pass,
    }
}
