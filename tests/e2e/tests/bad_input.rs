//! Frames that must not be taken for data, and bytes that are no frames at all.

use holdfast_api::message::{BufferReply, Call, FdbReply, ShowBuffer, ShowFdb};
use holdfast_e2e::frames::{cases, host_mac, pfc, Ip, Roce};
use holdfast_e2e::wait::wait_for;
use holdfast_e2e::{in_lab, Lab, LabError, LabPlan, TestResult};
use holdfast_wire::Ecn;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);
/// Frames of 8 bytes of addresses and type are the shortest that a packet socket sends.
const SHORTEST: usize = 14;

fn lossless(psn: u32) -> Vec<u8> {
    let ecn = Ecn::NotEct;
    Roce { from: 1, to: 2, ip: Ip::V4, dscp: 26, ecn, tags: &[], len: 100, psn }.bytes()
}

/// The switch still does its work: ten frames from h1 arrive at h2, and nothing is held.
fn assert_works(lab: &mut Lab) -> TestResult {
    let capture = lab.capture("h2", &[])?;
    let frames: Vec<_> = (0..10).map(|psn| lossless(0xabcd00 + psn)).collect();
    lab.inject("h1", &frames)?;
    let switch = lab.switch("sw")?;
    wait_for("the switch doesn't drain", SOON, || {
        let buffer: BufferReply = switch.call(Call::ShowBuffer(ShowBuffer {}))?;
        Ok((buffer.pools.iter().all(|pool| pool.lent == 0) && buffer.flood_copies == 0)
            .then_some(()))
    })?;
    std::thread::sleep(Duration::from_millis(100));
    let arrived = capture.stop()?;
    let ours = arrived.iter().filter(|frame| frames.contains(&frame.bytes)).count();
    assert_eq!(ours, frames.len());
    Ok(())
}

fn stations(lab: &mut Lab) -> Result<Vec<(String, String)>, LabError> {
    let reply: FdbReply = lab.switch("sw")?.call(Call::ShowFdb(ShowFdb::default()))?;
    let mut all: Vec<_> = reply.entries.into_iter().map(|entry| (entry.mac, entry.port)).collect();
    all.sort();
    Ok(all)
}

/// Fault 11: a class-enable vector of 0 with every timer at its maximum pauses nothing; a zero
/// source address does no harm.
#[test]
fn pfc_without_a_class_is_counted_and_ignored() -> TestResult {
    in_lab(&LabPlan::star(2), |lab| {
        let (empty, valid): (Vec<_>, Vec<_>) =
            cases("11_pfc_cev0.hex")?.into_iter().partition(|case| case.name.starts_with("cev"));
        assert_eq!((empty.len(), valid.len()), (2, 2));
        lab.inject("h1", &empty.into_iter().map(|case| case.bytes).collect::<Vec<_>>())?;
        let switch = lab.switch("sw")?;
        let status = wait_for("invalid frames aren't counted", SOON, || {
            let status = switch.pfc("h1")?;
            Ok((status.invalid.get("empty_vector") == Some(&2)).then_some(status))
        })?;
        for priority in &status.priorities {
            let heard = priority.received;
            assert_eq!((heard.xoff, heard.refresh, heard.xon, heard.paused), (0, 0, 0, false));
            assert_eq!(priority.not_enabled_frames, 0);
        }
        for (number, case) in valid.into_iter().enumerate() {
            lab.inject("h1", &[case.bytes])?;
            let switch = lab.switch("sw")?;
            wait_for(&format!("{} isn't counted", case.name), SOON, || {
                let heard = switch.pfc("h1")?.priorities[3].received;
                Ok((heard.xoff + heard.refresh == number as u64 + 1).then_some(()))
            })?;
        }
        let heard = lab.switch("sw")?.pfc("h1")?.priorities[3].received;
        assert!(heard.paused_ns > 0 && heard.transitions > 0, "{heard:?}");
        assert_works(lab)
    })
}

/// MAC control in every disguise: to the group, to a station, unknown opcode, global pause, short.
fn mac_control() -> Vec<Vec<u8>> {
    let mut quanta = [0; 8];
    quanta[3] = 100;
    let plain = pfc(9, 1 << 3, &quanta);
    let with = |at: usize, bytes: &[u8]| {
        let mut frame = plain.clone();
        frame[at..at + bytes.len()].copy_from_slice(bytes);
        frame
    };
    let tagged = [&plain[..12], &[0x81, 0, 0, 5], &plain[12..]].concat();
    let pause = [&plain[..14], &[0, 1, 0xff, 0xff], &[0; 42]].concat();
    vec![
        with(0, &host_mac(2).0),
        with(0, &[0xff; 6]),
        with(14, &[0x77, 0x77]),
        plain[..30].to_vec(),
        tagged,
        pause,
        plain,
    ]
}

/// Fault 15: MAC control and reserved groups are neither forwarded, learned nor charged.
#[test]
fn reserved_groups_and_mac_control_stay_on_their_link() -> TestResult {
    in_lab(&LabPlan::star(3), |lab| {
        let before = stations(lab)?;
        let captures = [lab.capture("h2", &[])?, lab.capture("h3", &[])?];
        let mut frames: Vec<_> =
            cases("15_reserved_group_addresses.hex")?.into_iter().map(|case| case.bytes).collect();
        assert_eq!(frames.len(), 16);
        // A source that no host has: learning would show. One of the 16 is MAC control itself.
        frames.iter_mut().for_each(|frame| frame[6..12].copy_from_slice(&host_mac(0x99).0));
        lab.inject("h1", &frames)?;
        lab.inject("h1", &mac_control())?;
        let switch = lab.switch("sw")?;
        let reserved = |port: &holdfast_api::message::PortStatus| {
            port.drops.get("reserved_group").copied().unwrap_or(0)
        };
        wait_for("the reserved groups aren't counted", SOON, || {
            Ok((reserved(&switch.port("h1")?) >= 15).then_some(()))
        })?;
        wait_for("the last MAC control frame isn't counted", SOON, || {
            Ok((switch.pfc("h1")?.priorities[3].received.xoff > 0).then_some(()))
        })?;
        let invalid = switch.pfc("h1")?.invalid;
        for kind in ["too_short", "unknown_opcode", "tagged", "empty_vector"] {
            assert_eq!(invalid.get(kind), Some(&1), "{kind}: {invalid:?}");
        }
        let port = switch.port("h1")?;
        assert_eq!((reserved(&port), port.rx_frames), (15, 15), "{port:?}");
        assert_eq!(port.drops.values().sum::<u64>(), 15, "MAC control is no drop: {port:?}");
        for pg in 0..8 {
            let pg = switch.pg("h1", pg)?;
            let peak = pg.watermark.persistent;
            assert_eq!((peak.guaranteed, peak.service, peak.headroom), (0, 0, 0), "{pg:?}");
        }
        assert_eq!(stations(lab)?, before);
        for capture in captures {
            assert_eq!(capture.stop()?, []);
        }
        assert_works(lab)
    })
}

/// A small generator with a fixed seed (xorshift): the same frames in every run.
struct Dice(u64);

impl Dice {
    fn byte(&mut self) -> u8 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 24) as u8
    }
}

/// Random bytes of every length, and every beginning of frames with headers to stumble over.
fn broken_frames() -> Result<Vec<Vec<u8>>, LabError> {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut frames = Vec::new();
    const TYPES: [[u8; 2]; 6] =
        [[8, 0], [0x86, 0xdd], [0x81, 0], [0x88, 0xa8], [0x91, 0], [0x88, 0x08]];
    for len in SHORTEST..=60 {
        for round in 0..24 {
            let mut frame: Vec<_> = (0..len).map(|_| dice.byte()).collect();
            if round % 4 > 0 {
                frame[..6].copy_from_slice(&host_mac(2).0);
                frame[12..14].copy_from_slice(&TYPES[round % TYPES.len()]);
            }
            frames.push(frame);
        }
    }
    for file in ["09_vlan_qinq_ecn.hex", "32_ipv6_traffic_class.hex", "11_pfc_cev0.hex"] {
        for case in cases(file)? {
            let longest = case.bytes.len().min(61);
            frames.extend((SHORTEST..longest).map(|len| case.bytes[..len].to_vec()));
        }
    }
    Ok(frames)
}

fn broken_frames_never_stop_the_switch(workers: u32) -> TestResult {
    in_lab(&LabPlan::star(3).each(|switch| switch.workers(workers)), |lab| {
        let frames = broken_frames()?;
        let control = frames.iter().filter(|frame| holdfast_wire::is_mac_control(frame)).count();
        for part in frames.chunks(500) {
            lab.inject_slowly("h1", part, Duration::from_micros(50))?;
        }
        let data = (frames.len() - control) as u64;
        let switch = lab.switch("sw")?;
        let port = wait_for("not every frame is counted", SOON, || {
            let port = switch.port("h1")?;
            Ok((port.rx_frames == data).then_some(port))
        })?;
        assert_eq!(port.lossless_violations, 0, "{port:?}");
        lab.inject("h1", &[pfc(1, 1 << 3, &[0; 8])])?;
        assert_works(lab)
    })
}

#[test]
fn broken_frames_never_stop_the_switch_one_worker() -> TestResult {
    broken_frames_never_stop_the_switch(1)
}

#[test]
fn broken_frames_never_stop_the_switch_two_workers() -> TestResult {
    broken_frames_never_stop_the_switch(2)
}
