//! The `--flow` argument: keys and values, and the flow they describe.

use std::net::IpAddr;
use std::str::FromStr;

use holdfast_host::flow::FlowError;
use holdfast_host::{Flow, FlowSpec, Nanos, Rate};
use holdfast_wire::ethernet::{Tag, TPID_CUSTOMER, TPID_SERVICE};
use holdfast_wire::roce::{DataOp, IpPair};
use holdfast_wire::{Ecn, MacAddr};

use crate::cli::{number, TrafficArgs};

/// Queue pair of the first flow that names none; the next ones count on.
const FIRST_QP: u32 = 0x11;

/// One `--flow`; what is `None` has a default or comes from the other arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlowArg {
    dscp: Option<u8>,
    qp: Option<u32>,
    rate: Option<Rate>,
    sizes: Vec<usize>,
    count: Option<u64>,
    ecn: Option<Ecn>,
    priority: Option<u8>,
    tags: Vec<Tag>,
    op: Option<DataOp>,
    src_port: Option<u16>,
    first_psn: Option<u32>,
    dst_mac: Option<MacAddr>,
    dst_ip: Option<IpAddr>,
}

/// Why flows can't be made of the arguments.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FlowArgError {
    /// No destination MAC, neither in the flow nor beside it.
    #[error("flow {0}: no destination MAC; give --to-mac, or to-mac= in the flow")]
    NoMac(usize),
    /// Source or destination IP missing, or not of one family.
    #[error("flow {0}: --from-ip and --to-ip (or to-ip= in the flow) must be of one IP version")]
    Addresses(usize),
    /// The flow itself is impossible.
    #[error("flow {index}: {source}")]
    Flow {
        /// Which one, from 0.
        index: usize,
        /// What is wrong with it.
        source: FlowError,
    },
}

impl FromStr for FlowArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut flow = Self::default();
        for pair in text.split(',') {
            let (key, value) =
                pair.split_once('=').ok_or_else(|| format!("\"{pair}\" is not KEY=VALUE"))?;
            flow.set(key, value).map_err(|reason| format!("{key}: {reason}"))?;
        }
        Ok(flow)
    }
}

impl FlowArg {
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "dscp" => self.dscp = Some(below(value, 64)?),
            "qp" => self.qp = Some(below(value, 1 << 24)?),
            "rate" => self.rate = Some(rate(value)?),
            "size" => self.sizes = value.split('/').map(number).collect::<Result<_, _>>()?,
            "count" => self.count = Some(number(value)?),
            "ecn" => self.ecn = Some(ecn(value)?),
            "priority" => self.priority = Some(below(value, 8)?),
            "vlan" => self.tags = tags(value)?,
            "op" => self.op = Some(op(value)?),
            "sport" => self.src_port = Some(number(value)?),
            "psn" => self.first_psn = Some(below(value, 1 << 24)?),
            "to-mac" => self.dst_mac = Some(parsed(value)?),
            "to-ip" => self.dst_ip = Some(parsed(value)?),
            _ => return Err("unknown key".to_owned()),
        }
        Ok(())
    }

    fn spec(
        &self,
        index: usize,
        traffic: &TrafficArgs,
        own: MacAddr,
    ) -> Result<FlowSpec, FlowArgError> {
        let dst_mac = self.dst_mac.or(traffic.to_mac).ok_or(FlowArgError::NoMac(index))?;
        let ip = match (traffic.from_ip, self.dst_ip.or(traffic.to_ip)) {
            (Some(IpAddr::V4(src)), Some(IpAddr::V4(dst))) => IpPair::V4 { src, dst },
            (Some(IpAddr::V6(src)), Some(IpAddr::V6(dst))) => IpPair::V6 { src, dst },
            _ => return Err(FlowArgError::Addresses(index)),
        };
        let qp = self.qp.unwrap_or(FIRST_QP + index as u32);
        let dscp = self.dscp.unwrap_or(26);
        Ok(FlowSpec {
            dst_mac,
            src_mac: traffic.from_mac.unwrap_or(own),
            tags: self.tags.clone(),
            ip,
            dscp,
            ecn: self.ecn.unwrap_or(Ecn::Ect0),
            // As NICs do: a port of the dynamic range, one per queue pair.
            src_port: self.src_port.unwrap_or(0xc000 | (qp & 0x3fff) as u16),
            op: self.op.unwrap_or(DataOp::RcSend),
            qp,
            first_psn: self.first_psn.unwrap_or(0),
            // The class selector, as a host that trusts DSCP maps it.
            priority: self.priority.unwrap_or(dscp >> 3),
            sizes: if self.sizes.is_empty() { vec![1024] } else { self.sizes.clone() },
            rate: self.rate.unwrap_or(Rate::Max),
            frames: self.count,
        })
    }
}

/// Sets every flow up.
pub(crate) fn flows(traffic: &TrafficArgs, own: MacAddr) -> Result<Vec<Flow>, FlowArgError> {
    let slack = Nanos(traffic.catch_up.saturating_mul(1000));
    let one = |(index, arg): (usize, &FlowArg)| {
        let spec = arg.spec(index, traffic, own)?;
        Flow::new(spec, slack).map_err(|source| FlowArgError::Flow { index, source })
    };
    traffic.flows.iter().enumerate().map(one).collect()
}

fn below<T: TryFrom<u64> + TryInto<u64> + Copy>(value: &str, limit: u64) -> Result<T, String> {
    let read = number::<T>(value)?;
    match read.try_into() {
        Ok(number) if number < limit => Ok(read),
        _ => Err(format!("{value} is not below {limit}")),
    }
}

fn parsed<T: FromStr<Err: std::fmt::Display>>(value: &str) -> Result<T, String> {
    value.parse().map_err(|error: T::Err| error.to_string())
}

fn rate(value: &str) -> Result<Rate, String> {
    match value {
        "max" => Ok(Rate::Max),
        bits => parsed(bits).map(Rate::Bits),
    }
}

fn ecn(value: &str) -> Result<Ecn, String> {
    match value {
        "none" => Ok(Ecn::NotEct),
        "ect0" => Ok(Ecn::Ect0),
        "ect1" => Ok(Ecn::Ect1),
        "ce" => Ok(Ecn::Ce),
        _ => Err("not one of none, ect0, ect1, ce".to_owned()),
    }
}

fn op(value: &str) -> Result<DataOp, String> {
    match value {
        "send" => Ok(DataOp::RcSend),
        "write" => Ok(DataOp::RcWrite),
        "ud" => Ok(DataOp::UdSend),
        _ => Err("not one of send, write, ud".to_owned()),
    }
}

/// Tags outermost first: all but the last are service tags.
fn tags(value: &str) -> Result<Vec<Tag>, String> {
    let items: Vec<&str> = value.split('+').collect();
    let tag = |(index, item): (usize, &&str)| {
        let (vid, pcp) = item.split_once('.').unwrap_or((item, "0"));
        let tpid = if index + 1 == items.len() { TPID_CUSTOMER } else { TPID_SERVICE };
        Ok(Tag { tpid, pcp: below(pcp, 8)?, dei: false, vid: below(vid, 4096)? })
    };
    items.iter().enumerate().map(tag).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_read() {
        let text = "dscp=3,qp=0x12,rate=2.5G,size=64/1024,count=7,ecn=ect1,priority=4,\
                    vlan=100.5+7,op=write,sport=50000,psn=0xffffff,to-mac=02:00:00:00:00:02,\
                    to-ip=fd00::2";
        let flow: FlowArg = text.parse().unwrap();
        let outer = Tag { tpid: TPID_SERVICE, pcp: 5, dei: false, vid: 100 };
        let expected = FlowArg {
            dscp: Some(3),
            qp: Some(0x12),
            rate: Some(Rate::Bits("2.5G".parse().unwrap())),
            sizes: vec![64, 1024],
            count: Some(7),
            ecn: Some(Ecn::Ect1),
            priority: Some(4),
            tags: vec![outer, Tag::customer(0, 7)],
            op: Some(DataOp::RcWrite),
            src_port: Some(50000),
            first_psn: Some(0x00ff_ffff),
            dst_mac: Some(MacAddr([2, 0, 0, 0, 0, 2])),
            dst_ip: Some("fd00::2".parse().unwrap()),
        };
        assert_eq!(flow, expected);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, reason) in [
            ("dscp", "\"dscp\" is not KEY=VALUE"),
            ("colour=red", "colour: unknown key"),
            ("dscp=64", "dscp: 64 is not below 64"),
            ("qp=0x1000000", "qp: 0x1000000 is not below 16777216"),
            ("vlan=4096", "vlan: 4096 is not below 4096"),
            ("vlan=1.8", "vlan: 8 is not below 8"),
            ("ecn=yes", "ecn: not one of none, ect0, ect1, ce"),
            ("sport=65536", "sport: 65536 is out of range"),
            ("size=64/", "size: \"\" is not a number: cannot parse integer from empty string"),
        ] {
            assert_eq!(text.parse::<FlowArg>().unwrap_err(), reason);
        }
    }
}
