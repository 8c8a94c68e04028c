//! BUFFER_QUEUE, SCHEDULER, WRED_PROFILE and QUEUE.

use super::ingress::{bytes, threshold, Pools};
use super::tables::{owned, Tables};
use holdfast_api::doc::Finding;
use holdfast_core::profile::{Limit, MarkAt, NotEct, QueueSpec, Service, WredSpec};
use holdfast_core::units::{BitRate, CellSize};

/// Writes the rows of one queue.
#[allow(clippy::too_many_arguments, reason = "one queue needs both sides of the document")]
pub(super) fn queue(
    key: &str,
    row: &str,
    queue: &QueueSpec,
    lossless: bool,
    pools: &Pools,
    cell: CellSize,
    tables: &mut Tables,
    wrong: &mut Vec<Finding>,
) {
    // Lossless queues have no limit (SPEC 3.5): all there is.
    let (pool, prefix, limit) = match (lossless, queue.limit) {
        (false, Some(limit)) => (&pools.lossy, "egress_lossy_profile", limit),
        (false, None) => (&pools.lossy, "egress_lossy_profile", Limit::Static(pools.all)),
        (true, _) => (&pools.lossless, "egress_lossless_profile", Limit::Static(pools.all)),
    };
    let fields = vec![
        ("pool", pool.clone()),
        ("size", bytes(queue.guarantee, cell)),
        threshold(limit, cell),
    ];
    let profile = tables.named("BUFFER_PROFILE", prefix, owned(fields));
    tables.row("BUFFER_QUEUE", row, owned(vec![("profile", profile)]));
    let mut fields = vec![("scheduler", scheduler(key, queue, tables, wrong))];
    if let Some(line) = &queue.wred {
        let key = format!("{key}.wred");
        fields.push(("wred_profile", wred(&key, line, cell, tables, wrong)));
    }
    tables.row("QUEUE", row, owned(fields));
}

fn scheduler(
    key: &str,
    queue: &QueueSpec,
    tables: &mut Tables,
    wrong: &mut Vec<Finding>,
) -> String {
    let mut fields = match queue.service {
        Service::Strict => vec![("type", "STRICT".to_owned())],
        Service::Weight(weight) => {
            if weight > 100 {
                let message = "weights of SONiC go up to 100";
                let finding = Finding::new(format!("{key}.weight"), message, "scale all weights");
                wrong.push(finding.numbers(weight, 100));
            }
            vec![("type", "DWRR".to_owned()), ("weight", weight.to_string())]
        }
    };
    let rates = [("min_rate", "cir", queue.min_rate), ("max_rate", "pir", queue.max_rate)];
    for (name, field, rate) in rates {
        let Some(bits) = rate.map(BitRate::bits_per_second) else { continue };
        if bits % 8 != 0 {
            let message = "SONiC has rates of whole bytes a second";
            let finding = Finding::new(format!("{key}.{name}"), message, "use a multiple of 8");
            wrong.push(finding.numbers(bits, "a multiple of 8"));
        }
        fields.push((field, (bits / 8).to_string()));
    }
    if queue.min_rate.or(queue.max_rate).is_some() {
        fields.push(("meter_type", "bytes".to_owned()));
    }
    tables.named("SCHEDULER", "scheduler", owned(fields))
}

fn wred(
    key: &str,
    line: &WredSpec,
    cell: CellSize,
    tables: &mut Tables,
    wrong: &mut Vec<Finding>,
) -> String {
    if line.mark_at != MarkAt::Dequeue {
        let message = "CONFIG_DB doesn't say where the depth is taken";
        wrong.push(Finding::new(format!("{key}.mark_at"), message, "set mark_at = \"dequeue\""));
    }
    if line.ewma_shift != 0 {
        let message = "CONFIG_DB has no average of the depth";
        wrong.push(Finding::new(format!("{key}.ewma_weight"), message, "set ewma_weight = 0"));
    }
    let units = u64::from(line.pmax.units());
    let percent = (units * 100 + 32_768) / 65_536;
    if (percent * 65_536 + 50) / 100 != units {
        let message = "SONiC has whole percents";
        let finding = Finding::new(format!("{key}.pmax"), message, "round it");
        wrong.push(finding.numbers(units as f64 / 65_536.0, "a multiple of 0.01"));
    }
    let drops = if line.not_ect == NotEct::Drop { "true" } else { "false" };
    let fields = vec![
        ("ecn", "ecn_all".to_owned()),
        ("wred_green_enable", drops.to_owned()),
        ("green_min_threshold", bytes(line.kmin, cell)),
        ("green_max_threshold", bytes(line.kmax, cell)),
        ("green_drop_probability", percent.to_string()),
    ];
    tables.named("WRED_PROFILE", "wred", owned(fields))
}
