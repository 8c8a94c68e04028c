//! Ports that flap, vanish and come back in any order, under load: two others lose nothing, and at
//! the end every cell and every chunk is where it was.
//!
//! Ten events; two hundred with `HOLDFAST_LONG=1`. The seed is printed, `HOLDFAST_SEED` sets it.

use holdfast_e2e::long::slice_or;
use holdfast_e2e::unrest::{self, all_quiet, all_up, resident, Happening, Unrest};
use holdfast_e2e::{in_lab, TestResult};
use std::time::Duration;

/// What the switch process may grow by, KiB.
const GROWTH: u64 = 1024;

fn flaps(workers: u32) -> TestResult {
    // In a long run memory is measured when the journal is full and every kind has happened.
    let (first, count) = slice_or((0, 10), (60, 200));
    let given = std::env::var("HOLDFAST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = given.unwrap_or_else(|| u64::from(std::process::id()));
    println!("{count} events, {workers} workers, HOLDFAST_SEED={seed}");
    in_lab(&unrest::plan(workers), |lab| {
        let receiver = lab.endpoint("h2", &["receive"])?;
        let flow = "dscp=26,qp=0x11,size=1024,rate=100M";
        let sender = lab.send("h1", "h2", &[flow], &["--seconds", "3600", "--speed", "1G"])?;
        let mut flaps = Unrest::new(lab, seed)?;
        // Once each, so that what is allocated once is there when it is measured.
        flaps.warm_up(lab, slice_or(false, true))?;
        for _ in 0..first {
            println!("{:?}", flaps.one(lab, Happening::flaps())?);
        }
        all_up(lab)?;
        let before = resident(lab)?;
        for event in 1..=count {
            println!("{:?}", flaps.one(lab, Happening::flaps())?);
            if event % 20 == 0 {
                println!("{event} events: {} KiB resident", resident(lab)?);
            }
        }
        flaps.calm();
        all_up(lab)?;
        let sent = sender.stop()?;
        std::thread::sleep(Duration::from_millis(200));
        let received = receiver.stop()?;
        // Frames for stations that were forgotten are flooded, to h2 too.
        let flows = received["flows_received"].as_array().ok_or("no flows")?;
        let flow = flows.iter().find(|flow| flow["qp"] == 0x11).ok_or("h1's flow is missing")?;
        assert_eq!((&flow["received"], &flow["lost"]), (&sent["sent"], &0.into()), "{flow}");
        assert!(sent["sent"].as_u64() > Some(1_000), "{sent}");
        all_quiet(lab)?;
        for port in lab.switch("sw")?.ports()?.ports {
            assert_eq!(port.lossless_violations, 0, "{}", port.port);
        }
        let after = resident(lab)?;
        println!("{before} KiB resident before, {after} KiB after");
        assert!(after <= before + GROWTH, "{before} KiB -> {after} KiB");
        Ok(())
    })
}

#[test]
fn random_flaps_one_worker() -> TestResult {
    flaps(1)
}

#[test]
fn random_flaps_two_workers() -> TestResult {
    flaps(2)
}
