//! The switch as a whole: identity, age, profile, workers, pools.

use super::family::{seconds, Families};
use super::snapshot::Snapshot;
use holdfast_shm::counters::{PoolBlock, Times};

/// The name of the shared headroom pool, as in `show buffer`.
const HEADROOM_POOL: &str = "headroom";

pub(super) fn add(families: &mut Families, snapshot: &Snapshot, now_ns: u64) {
    identity(families, snapshot, now_ns);
    applies(families, snapshot);
    workers(families, snapshot);
    pools(families, snapshot);
    families.gauge("holdfast_fdb_entries", "Stations in the forwarding database.");
    families.count(&[], snapshot.shared.fdb_entries);
}

fn identity(families: &mut Families, snapshot: &Snapshot, now_ns: u64) {
    let name = "holdfast_data_age_seconds";
    families.gauge(name, "Age of the oldest counter on this page.");
    families.add(&[], seconds(now_ns.saturating_sub(snapshot.written_ns())));
    let name = "holdfast_start_time_seconds";
    families.gauge(name, "When the switch started, seconds since 1970: counters began at 0.");
    families.add(&[], seconds(snapshot.identity.started_unix_ns));
    families.gauge("holdfast_build_info", "Release of the switch.");
    families.add(&[("version", &snapshot.identity.version)], 1.0);
    let profile = &snapshot.directory.profile;
    families.gauge("holdfast_profile_info", "The profile in force.");
    let generation = profile.generation.to_string();
    let labels =
        [("name", &*profile.name), ("sha256", &*profile.sha256), ("generation", &*generation)];
    families.add(&labels, 1.0);
}

fn applies(families: &mut Families, snapshot: &Snapshot) {
    let name = "holdfast_apply_accepted_total";
    families.counter(name, "Profiles that apply put into force.");
    families.count(&[], snapshot.control.applies_accepted);
    families.counter("holdfast_apply_refused_total", "Profiles that apply refused.");
    families.count(&[], snapshot.control.applies_refused);
}

fn workers(families: &mut Families, snapshot: &Snapshot) {
    let name = "holdfast_worker_busy_ratio";
    families.gauge(name, "Share of the last second in steps that found work.");
    for (number, worker) in snapshot.workers.iter().enumerate() {
        let millionths = worker.busy_millionths as f64;
        families.add(&[("worker", &number.to_string())], millionths / 1e6);
    }
    let mut steps = Times::default();
    snapshot.workers.iter().for_each(|worker| sum(&mut steps, &worker.step_times));
    let name = "holdfast_worker_step_seconds";
    families.histogram(name, "How long a step took that found work, all workers.", &steps);
    let mut reaction = Times::default();
    snapshot.ports.iter().for_each(|(_, port)| sum(&mut reaction, &port.xoff_reaction));
    let name = "holdfast_xoff_reaction_seconds";
    let help = "From the charge that decides XOFF to the kick that sends its PFC frame.";
    families.histogram(name, help, &reaction);
    let mut latency = Times::default();
    snapshot.ports.iter().for_each(|(_, port)| sum(&mut latency, &port.forwarding_latency));
    let name = "holdfast_forwarding_latency_seconds";
    let help = "From the RX burst that took a frame to the kick that sends it, by samples.";
    families.histogram(name, help, &latency);
}

fn sum(into: &mut Times, times: &Times) {
    into.total = into.total.saturating_add(times.total);
    for (into, count) in into.below.iter_mut().zip(times.below) {
        *into = into.saturating_add(count);
    }
}

fn pools(families: &mut Families, snapshot: &Snapshot) {
    let names = snapshot.directory.pools.iter().map(String::as_str);
    let headroom = Some(&snapshot.shared.headroom_pool).filter(|pool| pool.size > 0);
    let headroom = headroom.map(|pool| (HEADROOM_POOL, pool));
    let pools: Vec<(&str, &PoolBlock)> =
        names.zip(&snapshot.shared.pools).chain(headroom).collect();
    families.gauge("holdfast_pool_occupancy_cells", "Cells that a pool has lent.");
    for (name, pool) in &pools {
        families.count(&[("pool", name)], pool.lent);
    }
    let name = "holdfast_pool_watermark_cells";
    families.gauge(name, "The most cells that a pool has lent since the start.");
    for (name, pool) in &pools {
        families.count(&[("pool", name)], pool.watermark);
    }
}
