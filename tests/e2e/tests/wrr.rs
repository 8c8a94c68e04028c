//! Weights, minimum rates and the port's speed, on real frames (SPEC 6).

use holdfast_e2e::{
    in_lab, Endpoint, Lab, LabError, LabPlan, PortPlan, ProfilePlan, SwitchPlan, TestResult,
};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// CoS 1, 2 and 4 with weights 1, 2 and 5; CoS 6 strict. Their PGs are lossy, but borrow from the
/// larger pool: a queue must outlast the moments in which its sender has no core.
const CLASSES: &str = r#"
[maps.dscp_to_cos]
10 = 1
18 = 2
34 = 4
48 = 6
[maps.cos_to_pg]
1 = 1
2 = 2
4 = 4
[maps.cos_to_queue]
1 = 1
2 = 2
4 = 4
[pg.1]
pool = "lossless"
alpha = 0
[pg.2]
pool = "lossless"
alpha = 0
[pg.4]
pool = "lossless"
alpha = 0
[queue.1]
alpha = 1
weight = 1
[queue.2]
alpha = 1
weight = 2
[queue.4]
alpha = 1
weight = 5
"#;
const QUEUES: [(u8, f64); 3] = [(1, 1.0), (2, 2.0), (4, 5.0)];
const DSCPS: [u8; 3] = [10, 18, 34];
/// The slow port: little to do for the machine, and every class stays backlogged.
const SPEED: &str = "25M";
const RATES: [&str; 3] = ["15M", "20M", "30M"];

fn plan(workers: u32, speed: &str, more: &str) -> LabPlan {
    let port = |n| PortPlan::host(n).speed("10G");
    let switch = SwitchPlan::new("sw").port(port(1)).port(port(2));
    let switch = switch.port(PortPlan::host(3).speed(speed)).workers(workers);
    let profile = ProfilePlan::shipped("veth-lab-10g-jumbo").with(more);
    LabPlan::of(vec![switch.profile(profile)]).mtu(9000)
}

fn bytes_of(lab: &mut Lab, queue: u8) -> Result<(u64, u64), LabError> {
    let queue = lab.switch("sw")?.queue("h3", queue)?;
    Ok((queue.tx_bytes, queue.frames))
}

fn stop(senders: Vec<Endpoint>) -> TestResult {
    for sender in senders {
        sender.stop()?;
    }
    Ok(())
}

fn shares(workers: u32, sizes: [u32; 3]) -> TestResult {
    in_lab(&plan(workers, SPEED, CLASSES), |lab| {
        let flows: Vec<String> = DSCPS
            .iter()
            .zip(sizes)
            .zip(RATES)
            .map(|((dscp, size), rate)| format!("dscp={dscp},size={size},rate={rate},ecn=none"))
            .collect();
        let flows: Vec<&str> = flows.iter().map(String::as_str).collect();
        let sender = lab.send("h1", "h3", &flows, &["--seconds", "60", "--speed", "10G"])?;
        sleep(Duration::from_secs(3));
        let mut before = [0; 3];
        for (at, (queue, _)) in QUEUES.iter().enumerate() {
            before[at] = bytes_of(lab, *queue)?.0;
        }
        for round in 0..40 {
            sleep(Duration::from_millis(100));
            for (queue, _) in QUEUES {
                // A class that has nothing to send gets less than its share, and rightly.
                let waiting = bytes_of(lab, queue)?.1;
                assert!(waiting > 0, "queue {queue} ran dry in round {round}");
            }
        }
        let mut sent = [0.0; 3];
        for (at, (queue, _)) in QUEUES.iter().enumerate() {
            sent[at] = (bytes_of(lab, *queue)?.0 - before[at]) as f64;
        }
        let total: f64 = sent.iter().sum();
        for (at, (queue, weight)) in QUEUES.iter().enumerate() {
            let (share, due) = (sent[at] / total, weight / 8.0);
            assert!((share / due - 1.0).abs() < 0.02, "queue {queue}: {share:.4}, due {due:.4}");
        }
        stop(vec![sender])
    })
}

#[test]
fn wrr_shares_one_worker() -> TestResult {
    shares(1, [64, 1500, 9000])?;
    shares(1, [9000, 64, 1500])
}

#[test]
fn wrr_shares_two_workers() -> TestResult {
    shares(2, [1500, 9000, 64])
}

/// A strict class that wants more than there is leaves a minimum rate to the others.
#[test]
fn strict_starves_nobody_who_has_a_minimum_rate() -> TestResult {
    let more = format!("{CLASSES}\n[port.h3.queue.2]\nmin_rate = \"10M\"\n");
    in_lab(&plan(1, "50M", &more), |lab| {
        let flows = ["dscp=48,size=1024,rate=80M", "dscp=18,size=1024,rate=30M"];
        let sender = lab.send("h1", "h3", &flows, &["--seconds", "60", "--speed", "10G"])?;
        sleep(Duration::from_secs(1));
        let (start, before) = (Instant::now(), bytes_of(lab, 2)?.0);
        let strict = bytes_of(lab, 6)?.0;
        sleep(Duration::from_secs(3));
        let spent = start.elapsed().as_secs_f64();
        let rate = (bytes_of(lab, 2)?.0 - before) as f64 * 8.0 / spent;
        let strict = (bytes_of(lab, 6)?.0 - strict) as f64 * 8.0 / spent;
        // Without it nothing at all would pass; a late switch makes up only a part.
        assert!(rate > 7.0e6, "{rate:.0} bit/s of 10 Mb/s");
        assert!(strict > 2.0 * rate, "the rest is for the strict class: {strict:.0} bit/s");
        stop(vec![sender])
    })
}

/// Large frames, so that senders on two shared cores reach the rate. The port's speed counts 24
/// bytes more a frame than what the counter of bytes has.
fn shaper(speed: &str, bits: f64) -> TestResult {
    in_lab(&plan(1, speed, ""), |lab| {
        let rate = format!("dscp=0,size=9000,rate={}M,ecn=none", (bits / 1e6 * 0.65) as u64);
        let more = ["--seconds", "60", "--speed", "10G"];
        let senders =
            vec![lab.send("h1", "h3", &[&rate], &more)?, lab.send("h2", "h3", &[&rate], &more)?];
        sleep(Duration::from_secs(1));
        let (start, before) = (Instant::now(), bytes_of(lab, 0)?.0);
        sleep(Duration::from_secs(10));
        let after = bytes_of(lab, 0)?.0;
        let wire = (after - before) as f64 * 8.0 * 9024.0 / 9000.0;
        let measured = wire / start.elapsed().as_secs_f64();
        assert!((measured / bits - 1.0).abs() < 0.05, "{measured:.0} bit/s, declared {bits:.0}");
        stop(senders)
    })
}

#[test]
fn shaper_at_400_megabits() -> TestResult {
    shaper("400M", 4.0e8)
}

#[test]
fn shaper_at_800_megabits() -> TestResult {
    shaper("800M", 8.0e8)
}
