//! PFC and PAUSE frames: golden bytes, reports, and what must be invalid (SPEC 4.1, 4.2).
#![allow(clippy::unwrap_used, clippy::expect_used)] // In the functions that tests share.

mod vectors;

use holdfast_wire::mac_control::{encode_pause, encode_pfc, FRAME_LEN};
use holdfast_wire::{is_mac_control, parse_mac_control, InvalidKind, MacAddr, MacControl};
use proptest::prelude::*;
use vectors::{frames, hex, CASES};

const SRC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

fn pfc(enable: u8, quanta: [u16; 8]) -> [u8; FRAME_LEN] {
    let mut buf = [0xaa; FRAME_LEN];
    encode_pfc(&mut buf, SRC, enable, &quanta);
    buf
}

#[test]
fn xoff_and_xon_are_the_golden_bytes() {
    let start = "0180c2000001 020000000001 8808 0101 0008";
    let xoff = hex(&format!("{start} 000000000000 ffff 0000000000000000 {}", "00".repeat(26)));
    assert_eq!(pfc(8, [0, 0, 0, 0xffff, 0, 0, 0, 0])[..], xoff);
    let xon = hex(&format!("{start} {} {}", "0000".repeat(8), "00".repeat(26)));
    assert_eq!(pfc(8, [0; 8])[..], xon);
}

#[test]
fn times_of_clear_bits_are_zero() {
    assert_eq!(pfc(8, [7; 8]), pfc(8, [0, 0, 0, 7, 0, 0, 0, 0]));
}

#[test]
fn pause_is_the_golden_bytes() {
    let mut buf = [0xaa; FRAME_LEN];
    encode_pause(&mut buf, SRC, 0x1234);
    let start = "0180c2000001 020000000001 8808 0001 1234";
    assert_eq!(buf[..], hex(&format!("{start} {}", "00".repeat(42))));
    assert_eq!(parse_mac_control(&buf), MacControl::Pause { quanta: 0x1234 });
}

#[test]
fn reported_vectors_are_obeyed_or_invalid() {
    for (name, frame) in frames(CASES[1]) {
        assert!(is_mac_control(&frame), "{name}");
        let quanta = [0, 0, 0, 0xffff, 0, 0, 0, 0];
        let expected = if name.starts_with("cev") {
            MacControl::Invalid(InvalidKind::EmptyVector)
        } else {
            MacControl::Pfc { enable: 8, quanta }
        };
        assert_eq!(parse_mac_control(&frame), expected, "{name}");
    }
}

#[test]
fn only_the_ethertype_makes_mac_control() {
    for (name, frame) in frames(CASES[2]) {
        assert_eq!(is_mac_control(&frame), name.ends_with("01"), "{name}");
    }
    let mut unicast = pfc(1, [1; 8]);
    unicast[..6].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    assert!(is_mac_control(&unicast));
    assert!(matches!(parse_mac_control(&unicast), MacControl::Pfc { enable: 1, .. }));
}

#[test]
fn shortest_frames_and_one_byte_less() {
    let too_short = MacControl::Invalid(InvalidKind::TooShort);
    let frame = pfc(0x80, [9; 8]);
    let quanta = [0, 0, 0, 0, 0, 0, 0, 9];
    assert_eq!(parse_mac_control(&frame[..34]), MacControl::Pfc { enable: 0x80, quanta });
    let mut pause = [0; FRAME_LEN];
    encode_pause(&mut pause, SRC, 5);
    assert_eq!(parse_mac_control(&pause[..18]), MacControl::Pause { quanta: 5 });
    for len in 14..34 {
        assert!(is_mac_control(&frame[..len]));
        assert_eq!(parse_mac_control(&frame[..len]), too_short, "PFC of {len} bytes");
    }
    for len in 14..18 {
        assert_eq!(parse_mac_control(&pause[..len]), too_short, "PAUSE of {len} bytes");
    }
    assert!(!is_mac_control(&frame[..13]));
}

#[test]
fn unknown_opcodes_and_tagged_frames_are_invalid() {
    let mut frame = pfc(8, [1; 8]).to_vec();
    for opcode in [0u16, 2, 0x0100, 0x0102, 0xffff] {
        frame[14..16].copy_from_slice(&opcode.to_be_bytes());
        let unknown = MacControl::Invalid(InvalidKind::UnknownOpcode);
        assert_eq!(parse_mac_control(&frame), unknown, "{opcode:#06x}");
    }
    let mut tagged = pfc(8, [1; 8]).to_vec();
    for depth in 1..=3 {
        tagged.splice(12..12, [0x81, 0x00, 0x60, 0x00]);
        assert!(is_mac_control(&tagged), "{depth} tags");
        assert_eq!(parse_mac_control(&tagged), MacControl::Invalid(InvalidKind::Tagged));
    }
}

#[test]
fn the_kinds_are_a_closed_set_with_distinct_names() {
    for (index, kind) in InvalidKind::ALL.into_iter().enumerate() {
        assert_eq!(kind.index(), index);
        assert!(InvalidKind::ALL.iter().all(|o| (o.name() == kind.name()) == (*o == kind)));
    }
}

proptest! {
    #[test]
    fn what_is_encoded_is_read_back(enable in 1u8.., quanta in any::<[u16; 8]>()) {
        let mut masked = quanta;
        for (priority, time) in masked.iter_mut().enumerate() {
            *time *= u16::from(enable >> priority & 1);
        }
        let read = parse_mac_control(&pfc(enable, quanta));
        prop_assert_eq!(read, MacControl::Pfc { enable, quanta: masked });
    }
}
