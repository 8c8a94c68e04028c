//! A frame's bytes through every parser and codec of `holdfast-wire` (SPEC 2, 4, 5).

use holdfast_wire::ethernet::{self, encode_header, inner_ethertype, ETHERTYPE_MAC_CONTROL};
use holdfast_wire::ip::{ipv4_checksum, ipv4_checksum_valid};
use holdfast_wire::mac_control::{encode_pause, encode_pfc, FRAME_LEN, PFC_MIN_LEN};
use holdfast_wire::roce::RoceView;
use holdfast_wire::{
    is_mac_control, mark_ce, parse, parse_mac_control, Ecn, Headers, L3Kind, MacAddr, MacControl,
    Marking, ParseError,
};

/// Parses, and holds what was found against the bytes; then marks CE and holds the result against
/// a full recomputation.
pub fn target(frame: &[u8]) {
    assert_eq!(is_mac_control(frame), ethernet::is_mac_control(frame), "the two disagree");
    let headers = match parse(frame) {
        Err(ParseError::Runt { len }) => {
            assert!(len == frame.len() && len < ethernet::HEADER_LEN);
            assert!(!is_mac_control(frame) && RoceView::find(frame).is_none());
            return;
        }
        Ok(headers) => headers,
    };
    check_headers(frame, &headers);
    if is_mac_control(frame) {
        check_mac_control(frame);
    } else {
        check_marking(frame, &headers);
    }
}

fn check_headers(frame: &[u8], headers: &Headers) {
    let Headers { dst, src, tags, outer, ethertype, l3 } = *headers;
    assert!(tags <= 3 && outer.is_some() == (tags > 0));
    assert_eq!(inner_ethertype(frame), Some(ethertype));
    assert_eq!(is_mac_control(frame), ethertype == ETHERTYPE_MAC_CONTROL);
    for mac in [dst, src] {
        assert_eq!(MacAddr::from_u64(mac.to_u64()), mac);
        assert_eq!(mac.to_string().parse(), Ok(mac));
    }
    if let (0 | 1, outer) = (tags, outer.as_slice()) {
        let mut again = [0; 18];
        let len = encode_header(&mut again, dst, src, outer, ethertype).unwrap();
        assert_eq!(frame.get(..len), again.get(..len), "encoding what was read");
    }
    if let Some(ip) = l3.ip() {
        assert_eq!(usize::from(ip.offset), 14 + 4 * usize::from(tags));
        let least = if l3.kind() == L3Kind::V4 { 20 } else { 40 };
        assert!(frame.len() >= usize::from(ip.offset) + least && ip.dscp < 64);
    }
    if let Some(view) = RoceView::find(frame) {
        assert!(view.ip_at < view.udp_at && view.udp_at < view.body.start);
        assert!(view.body.start <= view.body.end && view.body.end + 4 <= frame.len());
        assert!(view.icrc(frame).is_some());
    }
}

/// What was read is written and read again.
fn check_mac_control(frame: &[u8]) {
    let mut again = [0; FRAME_LEN];
    let read = parse_mac_control(frame);
    match read {
        MacControl::Pfc { enable, quanta } => {
            assert!(enable != 0 && frame.len() >= PFC_MIN_LEN);
            encode_pfc(&mut again, MacAddr::default(), enable, &quanta);
            let MacControl::Pfc { enable: same, quanta: written } = parse_mac_control(&again)
            else {
                panic!("PFC that is no PFC");
            };
            assert_eq!(same, enable);
            for (class, (was, is)) in quanta.iter().zip(written).enumerate() {
                assert_eq!(if enable >> class & 1 == 1 { *was } else { 0 }, is, "class {class}");
            }
        }
        MacControl::Pause { quanta } => {
            encode_pause(&mut again, MacAddr::default(), quanta);
            assert_eq!(parse_mac_control(&again), read);
        }
        MacControl::Invalid(_) => {}
    }
}

fn check_marking(frame: &[u8], headers: &Headers) {
    let (kind, mut marked) = (headers.l3.kind(), frame.to_vec());
    let marking = mark_ce(&mut marked, kind, headers.tags);
    let expected = match headers.l3.ip().map(|ip| ip.ecn) {
        None | Some(Ecn::NotEct) => Marking::NotEct,
        Some(Ecn::Ce) => Marking::AlreadyCe,
        Some(Ecn::Ect0 | Ecn::Ect1) => Marking::Marked,
    };
    assert_eq!(marking, expected);
    if marking != Marking::Marked {
        assert_eq!(marked, frame, "not marked and changed");
        return;
    }
    let at = headers.l3.ip().map_or(0, |ip| usize::from(ip.offset));
    let allowed: &[usize] = if kind == L3Kind::V4 { &[1, 10, 11] } else { &[1] };
    for (place, (was, is)) in frame.iter().zip(&marked).enumerate() {
        assert!(was == is || place >= at && allowed.contains(&(place - at)), "byte {place}");
    }
    let now = parse(&marked).unwrap();
    let (before, after) = (headers.l3.ip().unwrap(), now.l3.ip().unwrap());
    assert_eq!((after.ecn, after.dscp), (Ecn::Ce, before.dscp));
    if kind == L3Kind::V4 {
        check_checksum(&frame[at..], &marked[at..]);
    }
    let icrc = |frame| RoceView::find(frame).map(|view| view.icrc(frame));
    assert_eq!(icrc(frame), icrc(&marked), "CE isn't part of the iCRC");
    let once = marked.clone();
    assert_eq!(mark_ce(&mut marked, kind, headers.tags), Marking::AlreadyCe);
    assert_eq!(marked, once);
}

/// RFC 1624: valid stays valid and is what recomputation gives; invalid stays invalid.
fn check_checksum(before: &[u8], after: &[u8]) {
    let valid = ipv4_checksum_valid(before);
    assert_eq!(valid, ipv4_checksum_valid(after), "validity changed");
    let length = 4 * usize::from(after[0] & 0xf);
    if let (true, Some(header)) = (valid, after.first_chunk::<20>()) {
        let carried = u16::from_be_bytes([header[10], header[11]]);
        assert_eq!(carried, ipv4_checksum(header, &after[20..length]), "not the recomputed one");
    }
}
