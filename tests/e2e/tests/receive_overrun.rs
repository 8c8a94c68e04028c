//! A switch that has no core for a while (SPEC 4.3, 14): within the stall that it states, peers
//! that obey lose nothing; what peers lose that do not is counted, and is theirs alone.

use holdfast_api::message::PortStatus;
use holdfast_e2e::long::slice_or;
use holdfast_e2e::wait::wait_for;
use holdfast_e2e::{in_lab, Endpoint, Lab, LabError, LabPlan, TestResult};
use holdfast_e2e::{PortPlan, SwitchPlan};
use nix::sched::{sched_setaffinity, CpuSet};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{sleep, JoinHandle};
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(60);
/// Of the stall that `show ports` states.
const SHARE: f64 = 0.8;

/// h1 and h2 send into h3, at ports of `speed`.
fn plan(speed: &str, workers: u32) -> LabPlan {
    let ports = [1, 2, 3].map(|host| PortPlan::host(host).speed(speed));
    let switch = ports.into_iter().fold(SwitchPlan::new("sw"), SwitchPlan::port);
    LabPlan::of(vec![switch.workers(workers)])
}

/// Lossless frames of both hosts, as small as the profile says that they are, at the full rate of
/// their ports.
struct Incast {
    receiver: Endpoint,
    senders: Vec<Endpoint>,
}

impl Incast {
    /// With further arguments of h2.
    fn start(lab: &mut Lab, speed: &str, of_h2: &[&str]) -> Result<Self, LabError> {
        let receiver = lab.endpoint("h3", &["receive"])?;
        let mut senders = Vec::new();
        for (host, qp, more) in [("h1", "0x11", &[][..]), ("h2", "0x12", of_h2)] {
            let flow = format!("dscp=26,qp={qp},size=1024,rate={speed}");
            let more = [&["--seconds", "600", "--speed", speed], more].concat();
            senders.push(lab.send(host, "h3", &[&flow], &more)?);
        }
        sleep(Duration::from_millis(200));
        Ok(Self { receiver, senders })
    }

    /// Ends it: what each host sent, and what h3 says when the switch is empty.
    fn stop(self, lab: &mut Lab) -> Result<(Vec<u64>, Value), LabError> {
        let mut sent = Vec::new();
        for sender in self.senders {
            sent.push(sender.stop()?["sent"].as_u64().unwrap_or_default());
        }
        wait_for("frames stay in the switch", SOON, || {
            let ports = lab.switch("sw")?.ports()?.ports;
            let empty = ports.iter().all(|port| port.rx_backlog == 0 && port.tx_in_ring_bytes == 0);
            Ok((empty && lab.switch("sw")?.queue("h3", 3)?.occupancy == 0).then_some(()))
        })?;
        Ok((sent, self.receiver.stop()?))
    }
}

/// Lossless frames lost in the switch, and before it.
fn losses(lab: &mut Lab) -> Result<(u64, u64), LabError> {
    // What the kernel lost is read every 10 ms.
    sleep(Duration::from_millis(25));
    let ports = lab.switch("sw")?.ports()?.ports;
    let sum = |of: fn(&PortStatus) -> u64| ports.iter().map(of).sum::<u64>();
    let overrun = sum(|port| port.receive_overrun);
    Ok((sum(|port| port.lossless_violations) - overrun, overrun))
}

/// The stall that is stated for h1.
fn stated(lab: &mut Lab) -> Result<Duration, LabError> {
    Ok(Duration::from_nanos(lab.switch("sw")?.port("h1")?.stall_survived_ns))
}

/// Stops the process of the switch for `span`. Returns how long its workers can have stood at most:
/// until their answer.
fn stop_for(lab: &mut Lab, span: Duration) -> Result<Duration, LabError> {
    let begin = Instant::now();
    lab.switch("sw")?.process().signal(Signal::SIGSTOP);
    sleep(span);
    lab.switch("sw")?.process().signal(Signal::SIGCONT);
    lab.switch("sw")?.ports()?;
    Ok(begin.elapsed())
}

/// The switch is stopped again and again, for 0.8 of what it states.
fn stops_cost_nothing(speed: &str, workers: u32, rounds: u32) -> TestResult {
    in_lab(&plan(speed, workers), |lab| {
        let stated = stated(lab)?;
        let span = stated.mul_f64(SHARE);
        let incast = Incast::start(lab, speed, &[])?;
        let (mut counted, mut too_long, mut lost, mut by_those) = (0, 0, losses(lab)?, 0);
        assert_eq!(lost, (0, 0), "before the first stop");
        while counted < rounds {
            let stood = stop_for(lab, span)?;
            wait_for("the backlog stays", SOON, || {
                let ports = lab.switch("sw")?.ports()?.ports;
                Ok(ports.iter().all(|port| port.rx_backlog < 128).then_some(()))
            })?;
            let now = losses(lab)?;
            if stood <= stated {
                counted += 1;
                assert_eq!(now, lost, "stop {counted}: {stood:?} of {stated:?}");
            } else {
                // The machine gave it no core for longer: what that costs must be counted.
                too_long += 1;
                by_those += now.0 + now.1 - lost.0 - lost.1;
                assert!(too_long < 10 * rounds, "this machine has no core to give: {stood:?}");
            }
            lost = now;
        }
        println!(
            "{counted} stops of {span:?}; {too_long} too long, {by_those} frames lost by them"
        );
        let (sent, received) = incast.stop(lab)?;
        assert_eq!(received["lost"], by_those, "{received}");
        let arrived = received["received"].as_u64().unwrap_or_default();
        assert_eq!(arrived + by_those, sent.iter().sum::<u64>());
        let pg = lab.switch("sw")?.pg("h1", 3)?;
        let (xoff, headroom) = (pg.xoff_edges, pg.watermark.user.headroom);
        assert!(xoff > 0 && pg.xon_edges > 0 && headroom > 0, "{pg:?}");
        Ok(())
    })
}

#[test]
fn stops_within_the_stated_stall_cost_nothing_one_worker() -> TestResult {
    stops_cost_nothing("250M", 1, slice_or(8, 100))
}

#[test]
fn stops_within_the_stated_stall_cost_nothing_two_workers() -> TestResult {
    stops_cost_nothing("250M", 2, slice_or(8, 100))
}

/// 27 ms: a busy machine takes a core away for longer.
#[test]
#[ignore = "needs a quiet machine: deploy/test.sh --long"]
fn stops_at_the_speed_of_the_profile_cost_nothing() -> TestResult {
    stops_cost_nothing("1G", 1, 100)
}

/// Threads that leave a core to nobody of their own will.
struct Spinners {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<nix::Result<()>>>,
}

impl Spinners {
    /// So many on each core that this process may use.
    fn start(on_each: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = (0..cores * on_each).map(|number| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                let mut set = CpuSet::new();
                set.set(number % cores)?;
                // A core of another number is as good: then they spin where they are.
                let pinned = sched_setaffinity(Pid::from_raw(0), &set);
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
                pinned
            })
        });
        Self { threads: threads.collect(), stop }
    }
}

impl Drop for Spinners {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // One that ended by itself would have starved nobody, and only made the test easier.
            let _ = thread.join();
        }
    }
}

/// Two spinners on each core take two thirds of what the switch and its hosts need.
#[test]
fn a_core_shared_with_spinners_costs_nothing() -> TestResult {
    in_lab(&plan("250M", 1), |lab| {
        let stated = stated(lab)?;
        let incast = Incast::start(lab, "250M", &[])?;
        let spinners = Spinners::start(2);
        let end = Instant::now() + Duration::from_secs(slice_or(4, 60));
        let mut longest = Duration::ZERO;
        while Instant::now() < end {
            let begin = Instant::now();
            lab.switch("sw")?.ports()?;
            longest = longest.max(begin.elapsed());
            sleep(Duration::from_millis(5));
        }
        drop(spinners);
        let (lost, before) = losses(lab)?;
        let (sent, received) = incast.stop(lab)?;
        println!("{} frames, longest answer {longest:?}", sent.iter().sum::<u64>());
        assert_eq!(received["lost"], lost + before, "{received}");
        assert!(longest > stated || lost + before == 0, "{lost} and {before}: {longest:?}");
        let pg = lab.switch("sw")?.pg("h1", 3)?;
        assert!(pg.xoff_edges > 0 && pg.watermark.user.headroom > 0, "{pg:?}");
        Ok(())
    })
}

/// h2 doesn't obey: it loses frames, all of them counted, and h1 none, although the same worker
/// serves both and is stopped meanwhile.
#[test]
fn a_deaf_peer_loses_only_its_own_frames() -> TestResult {
    in_lab(&plan("250M", 1), |lab| {
        let stated = stated(lab)?;
        let incast = Incast::start(lab, "250M", &["--ignore-pause"])?;
        let mut longest = Duration::ZERO;
        for _ in 0..slice_or(5, 50) {
            longest = longest.max(stop_for(lab, stated.mul_f64(SHARE))?);
            sleep(Duration::from_millis(300));
        }
        let (sent, received) = incast.stop(lab)?;
        sleep(Duration::from_millis(25));
        let [h1, h2] = ["h1", "h2"].map(|port| lab.switch("sw")?.port(port));
        let (h1, h2) = (h1?.lossless_violations, h2?.lossless_violations);
        println!("sent {sent:?}, lost {h1} and {h2}, longest stop {longest:?}");
        assert!(h2 > 0, "a host at 250M into half of 250M lost nothing: {received}");
        assert!(longest > stated || h1 == 0, "{h1} frames of the one that obeys: {longest:?}");
        assert_eq!(received["lost"], h1 + h2, "{received}");
        Ok(())
    })
}
