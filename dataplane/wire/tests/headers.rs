//! The receive path's parser: addresses, tags, classification fields, truncation.
#![allow(clippy::unwrap_used, clippy::expect_used)] // In the functions that tests share.

mod vectors;

use holdfast_wire::ethernet::{encode_header, MacAddrError, ETHERTYPE_ARP, ETHERTYPE_IPV4};
use holdfast_wire::roce::RoceView;
use holdfast_wire::{is_mac_control, mark_ce, parse, parse_mac_control};
use holdfast_wire::{Ecn, L3Kind, MacAddr, Marking, ParseError, Tag, L3};
use proptest::prelude::*;
use vectors::{all_frames, frames, hex, CASES};

#[test]
fn mac_address_text_and_number() {
    let mac: MacAddr = "02:00:5E:00:53:0a".parse().unwrap();
    assert_eq!(mac.to_string(), "02:00:5e:00:53:0a");
    assert_eq!("02-00-5e-00-53-0a".parse(), Ok(mac));
    assert_eq!(mac.to_u64(), 0x0200_5e00_530a);
    assert_eq!(MacAddr::from_u64(mac.to_u64()), mac);
    assert_eq!("02:00:5e".parse::<MacAddr>(), Err(MacAddrError::Groups { found: 3 }));
    for bad in ["02:00:5e:00:53:+a", "02:00:5e:00:53:0g", "02:00:5e:00:53:00a", "02:00:5e:00:53:"] {
        assert_eq!(bad.parse::<MacAddr>(), Err(MacAddrError::Digits { index: 5 }), "{bad}");
    }
}

#[test]
fn reserved_groups_are_the_sixteen_of_the_bridge_standard() {
    for (name, frame) in frames(CASES[2]) {
        let dst = parse(&frame).unwrap().dst;
        assert!(dst.is_reserved_group() && dst.is_multicast(), "{name}");
    }
    for outside in ["01:80:c2:00:00:10", "01:80:c2:00:01:00", "00:80:c2:00:00:01"] {
        assert!(!outside.parse::<MacAddr>().unwrap().is_reserved_group(), "{outside}");
    }
    assert!(MacAddr::BROADCAST.is_multicast());
}

#[test]
fn tag_shapes_are_looked_through_and_the_outer_one_kept() {
    for (name, frame) in frames(CASES[0]) {
        let headers = parse(&frame).unwrap();
        let (shape, packet) = name.split_once(' ').unwrap_or((&name, "arp"));
        let (tags, outer) = match shape {
            "untagged" => (0, None),
            "8100_vid3_pcp3" | "8100_then_arp" => (1, Some((0x8100, 3, 3))),
            "8100_in_8100" => (2, Some((0x8100, 3, 123))),
            "88a8_outer_8100_inner" => (2, Some((0x88a8, 3, 123))),
            "three_tags" => (3, Some((0x88a8, 3, 1))),
            other => panic!("unknown shape {other}"),
        };
        assert_eq!(headers.tags, tags, "{name}");
        assert_eq!(headers.outer.map(|t| (t.tpid, t.pcp, t.vid)), outer, "{name}");
        let found = headers.l3.ip().map(|ip| (headers.l3.kind(), ip.offset, ip.dscp, ip.ecn));
        let offset = 14 + 4 * tags;
        let expected = match packet {
            "ipv4_ect0" => Some((L3Kind::V4, offset, 26, Ecn::Ect0)),
            "ipv4_notect" => Some((L3Kind::V4, offset, 26, Ecn::NotEct)),
            "ipv6_ect1_dscp26" => Some((L3Kind::V6, offset, 26, Ecn::Ect1)),
            _ => None,
        };
        assert_eq!(found, expected, "{name}");
        if packet == "arp" {
            assert_eq!(headers.ethertype, ETHERTYPE_ARP);
        }
    }
}

#[test]
fn ipv6_traffic_class_is_read_across_both_bytes() {
    for (name, frame) in frames(CASES[3]) {
        let ip = parse(&frame).unwrap().l3.ip().expect("IPv6");
        let dscp: u8 = name[4..6].parse().unwrap();
        let ecn: u8 = name[10..11].parse().unwrap();
        assert_eq!((ip.dscp, ip.ecn.bits()), (dscp, ecn), "{name}");
    }
}

/// A frame with the given traffic class, flow label all ones if IPv6.
fn frame_with_class(ipv6: bool, class: u8) -> Vec<u8> {
    let line = if ipv6 { "untagged ipv6_ect1_dscp26" } else { "untagged ipv4_ect0" };
    let (_, mut frame) = frames(CASES[0]).into_iter().find(|(name, _)| name == line).unwrap();
    if ipv6 {
        frame[14] = 0x60 | class >> 4;
        frame[15] = class << 4 | 0x0f;
        frame[16..18].fill(0xff);
    } else {
        frame[15] = class;
    }
    frame
}

#[test]
fn every_dscp_and_ecn_reads_the_same_over_ipv4_and_ipv6() {
    for class in 0..=255u8 {
        let four = parse(&frame_with_class(false, class)).unwrap().l3;
        let six = parse(&frame_with_class(true, class)).unwrap().l3;
        assert!(matches!((four, six), (L3::Ipv4(_), L3::Ipv6(_))));
        assert_eq!(four.ip(), six.ip());
        let ip = four.ip().unwrap();
        assert_eq!((ip.dscp, ip.ecn), (class >> 2, Ecn::from_bits(class)));
    }
}

#[test]
fn malformed_ip_is_not_ip_and_a_runt_is_an_error() {
    let good = frame_with_class(false, 0);
    let l3_with = |at: usize, value: u8| {
        let mut frame = good.clone();
        frame[at] = value;
        parse(&frame).unwrap().l3
    };
    assert_eq!(l3_with(14, 0x65), L3::Other, "version 6 behind 0x0800");
    assert_eq!(l3_with(14, 0x44), L3::Other, "IHL 4");
    assert!(matches!(l3_with(14, 0x4b), L3::Ipv4(_)), "IHL 11: 44 bytes are there");
    assert_eq!(l3_with(14, 0x4f), L3::Other, "IHL 15: 60 bytes are not there");
    let mut six = frame_with_class(true, 0);
    six[14] = 0x40;
    assert_eq!(parse(&six).unwrap().l3, L3::Other, "version 4 behind 0x86dd");
    assert_eq!(parse(&good[..13]), Err(ParseError::Runt { len: 13 }));
    assert_eq!(parse(&good[..14]).unwrap().ethertype, ETHERTYPE_IPV4);
}

#[test]
fn a_fourth_tag_and_a_cut_off_tag_are_not_ip() {
    let tag = [0x81, 0, 0x60, 0x07];
    let mut frame = frame_with_class(false, 0);
    for _ in 0..4 {
        frame.splice(12..12, tag);
    }
    let headers = parse(&frame).unwrap();
    assert_eq!((headers.tags, headers.ethertype, headers.l3), (3, 0x8100, L3::Other));
    for (len, tags) in [(14, 0), (17, 0), (18, 1), (21, 1), (22, 2)] {
        let headers = parse(&frame[..len]).unwrap();
        assert_eq!((headers.tags, headers.ethertype), (tags, 0x8100), "{len} bytes");
        assert_eq!(headers.outer.is_some(), tags > 0);
    }
}

#[test]
fn tags_and_headers_round_trip() {
    let (dst, src) = (MacAddr([2, 0, 0, 0, 0, 2]), MacAddr([2, 0, 0, 0, 0, 1]));
    for tci in 0..=u16::MAX {
        assert_eq!(Tag::from_tci(0x8100, tci).tci(), tci);
    }
    let tags = [Tag::from_tci(0x88a8, 0xb064), Tag::customer(5, 7)];
    let mut buf = [0; 32];
    let len = encode_header(&mut buf, dst, src, &tags, 0x88b5).unwrap();
    assert_eq!(buf[..len], hex("020000000002 020000000001 88a8b064 8100a007 88b5"));
    let headers = parse(&buf[..len]).unwrap();
    assert_eq!((headers.dst, headers.src, headers.ethertype), (dst, src, 0x88b5));
    assert_eq!(headers.outer, Some(tags[0]));
    assert_eq!(encode_header(&mut buf[..21], dst, src, &tags, 0x88b5), None);
}

/// Every reader of the crate on one byte string: none may panic or read past the end.
fn read_everything(bytes: &[u8]) {
    let parsed = parse(bytes);
    assert_eq!(parsed.is_err(), bytes.len() < 14);
    if is_mac_control(bytes) {
        let _ = parse_mac_control(bytes);
    }
    let _ = parse_mac_control(bytes);
    if let Some(view) = RoceView::find(bytes) {
        assert!(view.body.end + 4 <= bytes.len());
        let _ = view.icrc_valid(bytes);
        assert!(view.icrc(&[]).is_none());
    }
    for kind in [L3Kind::Other, L3Kind::V4, L3Kind::V6] {
        for tags in 0..=u8::MAX {
            let mut copy = bytes.to_vec();
            let marking = mark_ce(&mut copy, kind, tags);
            assert_eq!(copy != bytes, marking == Marking::Marked);
        }
    }
}

#[test]
fn every_truncation_of_every_case_is_read_safely() {
    for (_, frame) in all_frames() {
        for len in 0..=100.min(frame.len()) {
            read_everything(&frame[..len]);
            if let Some(ip) = parse(&frame[..len]).ok().and_then(|h| h.l3.ip()) {
                assert!(usize::from(ip.offset) + 20 <= len);
            }
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_safely(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        read_everything(&bytes);
    }

    #[test]
    fn damaged_frames_are_read_safely(
        which in any::<proptest::sample::Index>(),
        damage in proptest::collection::vec((0usize..90, any::<u8>()), 1..6),
    ) {
        let mut all = all_frames();
        let (_, frame) = &mut all[which.index(CASES.iter().map(|c| frames(c).len()).sum())];
        for (at, value) in damage {
            if let Some(byte) = frame.get_mut(at) {
                *byte = value;
            }
        }
        read_everything(frame);
    }
}
