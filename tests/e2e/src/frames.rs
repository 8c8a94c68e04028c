//! Frames by their bytes.

use crate::LabError;
use holdfast_wire::mac_control::encode_pfc;
use holdfast_wire::roce::{encode_data, min_data_len, DataOp, DataPacket, IpPair, Path};
use holdfast_wire::{Ecn, MacAddr, Tag};
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path as FilePath;

/// The address of host number `n`, counted from 1.
pub const fn host_mac(n: u8) -> MacAddr {
    MacAddr([0x02, 0, 0, 0, 0, n])
}

/// The IP version of a frame to build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ip {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// A RoCEv2 frame from host `from` to host `to`.
#[derive(Clone, Copy, Debug)]
pub struct Roce<'a> {
    /// Number of the host that sends.
    pub from: u8,
    /// Number of the host that is meant.
    pub to: u8,
    /// IP version.
    pub ip: Ip,
    /// DSCP.
    pub dscp: u8,
    /// ECN field.
    pub ecn: Ecn,
    /// VLAN tags, outermost first.
    pub tags: &'a [Tag],
    /// Length in bytes without FCS; at least what the headers need.
    pub len: usize,
    /// Packet sequence number.
    pub psn: u32,
}

impl Roce<'_> {
    /// The frame's bytes, headers and iCRC valid.
    pub fn bytes(&self) -> Vec<u8> {
        let v4 = |n| Ipv4Addr::new(10, 0, 0, n);
        let v6 = |n| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, u16::from(n));
        let ip = match self.ip {
            Ip::V4 => IpPair::V4 { src: v4(self.from), dst: v4(self.to) },
            Ip::V6 => IpPair::V6 { src: v6(self.from), dst: v6(self.to) },
        };
        let path = Path {
            dst_mac: host_mac(self.to),
            src_mac: host_mac(self.from),
            tags: self.tags,
            ip,
            dscp: self.dscp,
            ecn: self.ecn,
            ttl: 64,
            src_port: 0xc000,
        };
        let op = DataOp::RcSend;
        let len = self.len.max(min_data_len(&path, op));
        let mut bytes = vec![0; len];
        let packet = DataPacket { path, op, dest_qp: 0x11, psn: self.psn, len };
        // Long enough by construction; an empty frame would fail the test that sends it.
        if encode_data(&mut bytes, &packet).is_err() {
            bytes.clear();
        }
        bytes
    }
}

/// Lossless frames (DSCP 26, QP 0x11) sent byte by byte, and so in disregard of a pause: what a
/// sender far away has under way when it is told to stop.
pub fn under_way(from: u8, to: u8, len: usize, count: u32) -> Vec<Vec<u8>> {
    let (ip, dscp, ecn) = (Ip::V4, 26, Ecn::Ect0);
    let frame = |psn| Roce { from, to, ip, dscp, ecn, tags: &[], len, psn }.bytes();
    (0..count).map(frame).collect()
}

/// A PFC frame of host `from` with its class-enable vector and eight times.
pub fn pfc(from: u8, enable: u8, quanta: &[u16; 8]) -> Vec<u8> {
    let mut bytes = [0; holdfast_wire::mac_control::FRAME_LEN];
    encode_pfc(&mut bytes, host_mac(from), enable, quanta);
    bytes.to_vec()
}

/// Bytes as lower-case hex.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of a line of hex; `None` if it is none.
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |c: u8| char::from(c).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match *pair {
            [high, low] => Some(digit(high)? << 4 | digit(low)?),
            _ => None,
        })
        .collect()
}

/// A frame of the fixtures, with its name.
#[derive(Clone, Debug)]
pub struct Case {
    /// What stands before the colon.
    pub name: String,
    /// The frame.
    pub bytes: Vec<u8>,
}

/// The frames of `tests/fixtures/cases/FILE`.
///
/// # Errors
/// [`LabError::File`], [`LabError::Content`].
pub fn cases(file: &str) -> Result<Vec<Case>, LabError> {
    let path = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/cases").join(file);
    let text = fs::read_to_string(&path)
        .map_err(|source| LabError::File { path: path.clone(), source })?;
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines
        .map(|line| {
            let case = line.split_once(" : ").and_then(|(name, hex)| {
                Some(Case { name: name.to_owned(), bytes: from_hex(hex.trim())? })
            });
            case.ok_or_else(|| LabError::Content { path: path.clone(), why: line.to_owned() })
        })
        .collect()
}
