//! The hex files of tests/fixtures/cases and the golden frames, as bytes.
#![allow(dead_code)]

/// Every case file that holds frames.
pub(crate) const CASES: [&str; 4] = [
    include_str!("../../../../tests/fixtures/cases/09_vlan_qinq_ecn.hex"),
    include_str!("../../../../tests/fixtures/cases/11_pfc_cev0.hex"),
    include_str!("../../../../tests/fixtures/cases/15_reserved_group_addresses.hex"),
    include_str!("../../../../tests/fixtures/cases/32_ipv6_traffic_class.hex"),
];

/// Bytes of a hex text; spaces are allowed between them.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
    assert!(digits.len() % 2 == 0, "odd number of hex digits");
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// (name, frame) of every line of a case file.
pub(crate) fn frames(file: &str) -> Vec<(String, Vec<u8>)> {
    let lines = file.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let split = |line: &str| {
        let (name, bytes) = line.rsplit_once(" : ").expect("name : hex");
        (name.trim().to_owned(), hex(bytes))
    };
    let frames: Vec<_> = lines.map(split).collect();
    assert!(!frames.is_empty());
    frames
}

/// All frames of all case files.
pub(crate) fn all_frames() -> Vec<(String, Vec<u8>)> {
    CASES.iter().flat_map(|file| frames(file)).collect()
}
