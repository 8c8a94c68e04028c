//! The CE rewrite against a full recomputation (SPEC 5).
#![allow(clippy::unwrap_used, clippy::expect_used)] // In the functions that tests share.

mod vectors;

use holdfast_wire::ip::{ipv4_checksum, ipv4_checksum_valid};
use holdfast_wire::roce::RoceView;
use holdfast_wire::{mark_ce, parse, Ecn, L3Kind, Marking};
use proptest::prelude::*;
use vectors::{frames, CASES};

/// Marks `packet` (an IP header at its start) behind an Ethernet header with `tags` tags.
fn marked(packet: &[u8], kind: L3Kind, tags: u8) -> (Vec<u8>, Marking) {
    let offset = 14 + 4 * usize::from(tags);
    let mut frame = vec![0x5a; offset];
    frame.extend_from_slice(packet);
    let marking = mark_ce(&mut frame, kind, tags);
    assert!(frame[..offset].iter().all(|&byte| byte == 0x5a), "bytes before IP changed");
    (frame.split_off(offset), marking)
}

/// The header with its checksum recomputed from scratch.
fn with_checksum(mut header: [u8; 20]) -> [u8; 20] {
    let checksum = ipv4_checksum(&header, &[]);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    header
}

/// A valid ECT header for which the checksum field is `checksum`, made by choosing the id field.
fn header_with_checksum(ecn: Ecn, checksum: u16) -> [u8; 20] {
    let mut header = [0; 20];
    header[0] = 0x45;
    header[1] = ecn.bits();
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    // Sum of all words must be 0xffff: the id takes what the others leave.
    let others = u32::from(u16::from_be_bytes([header[0], header[1]])) + u32::from(checksum);
    let others = (others & 0xffff) + (others >> 16);
    header[4..6].copy_from_slice(&(0xffff - others as u16).to_be_bytes());
    assert!(ipv4_checksum_valid(&header));
    header
}

#[test]
fn every_checksum_value_equals_recomputation() {
    for ecn in [Ecn::Ect0, Ecn::Ect1] {
        for checksum in 0..=u16::MAX {
            let header = header_with_checksum(ecn, checksum);
            let (after, marking) = marked(&header, L3Kind::V4, 0);
            assert_eq!(marking, Marking::Marked);
            let mut expected = header;
            expected[1] |= 3;
            let expected = with_checksum(expected);
            assert_eq!(after, expected, "ECN {ecn:?}, checksum {checksum:#06x}");
        }
    }
}

#[test]
fn an_invalid_checksum_stays_invalid_whatever_it_is() {
    for ecn in [Ecn::Ect0, Ecn::Ect1] {
        let valid = header_with_checksum(ecn, 0x1234);
        for checksum in (0..=u16::MAX).filter(|&checksum| checksum != 0x1234) {
            let mut header = valid;
            header[10..12].copy_from_slice(&checksum.to_be_bytes());
            assert!(!ipv4_checksum_valid(&header));
            let (after, _) = marked(&header, L3Kind::V4, 0);
            assert!(!ipv4_checksum_valid(&after), "checksum {checksum:#06x} was repaired");
        }
    }
}

#[test]
fn checksum_of_the_cases_verifies() {
    for (name, frame) in frames(CASES[0]) {
        let headers = parse(&frame).unwrap();
        if headers.l3.kind() == L3Kind::V4 {
            let at = usize::from(headers.l3.ip().unwrap().offset);
            assert!(ipv4_checksum_valid(&frame[at..]), "{name}");
        }
    }
    assert!(!ipv4_checksum_valid(&[]));
    assert!(!ipv4_checksum_valid(&[0x45; 19]));
}

#[test]
fn tag_shapes_change_only_the_bytes_of_ecn_and_checksum() {
    for (name, before) in frames(CASES[0]).into_iter().chain(frames(CASES[3])) {
        let headers = parse(&before).unwrap();
        let mut after = before.clone();
        let marking = mark_ce(&mut after, headers.l3.kind(), headers.tags);
        let at = headers.l3.ip().map_or(0, |ip| usize::from(ip.offset));
        let changed: Vec<usize> =
            (0..before.len()).filter(|&i| before[i] != after[i]).map(|i| i - at).collect();
        match headers.l3.ip().map(|ip| ip.ecn) {
            None | Some(Ecn::NotEct) => assert_eq!(marking, Marking::NotEct, "{name}"),
            Some(Ecn::Ce) => assert_eq!(marking, Marking::AlreadyCe, "{name}"),
            Some(Ecn::Ect0 | Ecn::Ect1) => {
                assert_eq!(marking, Marking::Marked, "{name}");
                let now = parse(&after).unwrap().l3.ip().unwrap();
                assert_eq!(now.ecn, Ecn::Ce, "{name}");
                assert_eq!(now.dscp, headers.l3.ip().unwrap().dscp, "{name}");
            }
        }
        let allowed: &[usize] = match (marking, headers.l3.kind()) {
            (Marking::Marked, L3Kind::V4) => &[1, 10, 11],
            (Marking::Marked, _) => &[1],
            _ => &[],
        };
        assert!(changed.iter().all(|at| allowed.contains(at)), "{name}: {changed:?}");
        assert_eq!(changed.is_empty(), marking != Marking::Marked, "{name}");
    }
}

#[test]
fn every_ipv6_class_keeps_dscp_and_flow_label() {
    for class in 0..=255u8 {
        let mut header = [0xff; 40];
        header[0] = 0x60 | class >> 4;
        header[1] = class << 4 | 0x0f;
        let (after, marking) = marked(&header, L3Kind::V6, 2);
        let mut expected = header;
        match class & 3 {
            0 => assert_eq!(marking, Marking::NotEct),
            3 => assert_eq!(marking, Marking::AlreadyCe),
            _ => {
                assert_eq!(marking, Marking::Marked);
                expected[1] |= 0x30;
            }
        }
        assert_eq!(after, expected);
    }
}

#[test]
fn packed_kind_round_trips() {
    for kind in [L3Kind::Other, L3Kind::V4, L3Kind::V6] {
        assert_eq!(L3Kind::from_bits(kind.bits()), kind);
    }
    assert_eq!(L3Kind::from_bits(3), L3Kind::Other);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn random_headers_equal_recomputation(
        bytes in any::<[u8; 20]>(),
        options in proptest::collection::vec(any::<u8>(), 40),
        words in 0usize..=10,
        ecn in 0u8..4,
        tags in 0u8..=3,
    ) {
        let mut header = bytes;
        let options = &options[..4 * words];
        header[0] = 0x45 + words as u8;
        header[1] = header[1] & !3 | ecn;
        let checksum = ipv4_checksum(&header, options);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        let packet = [&header[..], options].concat();
        prop_assert!(ipv4_checksum_valid(&packet));
        let (after, marking) = marked(&packet, L3Kind::V4, tags);
        let mut expected = header;
        if ecn == 1 || ecn == 2 {
            prop_assert_eq!(marking, Marking::Marked);
            expected[1] |= 3;
            let checksum = ipv4_checksum(&expected, options);
            expected[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        prop_assert_eq!(after, [&expected[..], options].concat());
    }

    #[test]
    fn random_invalid_headers_stay_invalid(bytes in any::<[u8; 20]>(), ecn in 1u8..3) {
        let mut header = bytes;
        header[0] = 0x45;
        header[1] = header[1] & !3 | ecn;
        prop_assume!(!ipv4_checksum_valid(&header));
        let (after, _) = marked(&header, L3Kind::V4, 0);
        prop_assert!(!ipv4_checksum_valid(&after));
    }
}

#[test]
fn a_marked_roce_packet_keeps_its_icrc() {
    let ip = "45020030 00004000 40110000 0a000001 0a000002 c00012b7 001c0000";
    let bth = "0400ffff 00000012 00000007 00000000";
    let mut frame = vectors::hex(&format!("020000000002 020000000001 0800 {ip} {bth}"));
    // The fixture's total length is 20 + 28 bytes; trailing bytes are Ethernet padding.
    frame.resize(64, 0);
    let view = RoceView::find(&frame).expect("a RoCEv2 packet");
    let icrc = view.icrc(&frame).unwrap();
    frame[view.body.end..view.body.end + 4].copy_from_slice(&icrc.to_le_bytes());
    assert!(view.icrc_valid(&frame));
    assert_eq!(mark_ce(&mut frame, L3Kind::V4, 0), Marking::Marked);
    let view = RoceView::find(&frame).unwrap();
    assert_eq!(view.ecn, Ecn::Ce);
    assert!(view.icrc_valid(&frame));
}
