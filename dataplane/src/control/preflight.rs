//! `preflight`: frames out of a port that pause nobody and are counted wherever a switch receives
//! them, to see whether MAC control passes (SPEC 9).

use super::dispatch::{reply, Answer};
use super::Console;
use holdfast_api::message::{
    ErrorBody, ErrorCode, Preflight, PreflightKind, PreflightReply, MAX_PREFLIGHT,
};
use holdfast_core::ids::Priority;
use holdfast_core::io::PortIo;
use holdfast_core::port::Port;
use holdfast_wire::mac_control::{encode_pfc, FRAME_LEN};
use holdfast_wire::MacAddr;

/// An opcode of MAC control that is given to nothing (IEEE 802.3 annex 31A).
const UNUSED_OPCODE: u16 = 0x7f00;
/// The first of the two EtherTypes for local experiments (IEEE 802, 9.2.4).
const EXPERIMENTAL: u16 = 0x88b5;
/// A group address that no bridge forwards, and that isn't the one of pauses: LLDP's.
const NEAREST_BRIDGE: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0x0e];
/// What a frame of [`PreflightKind::Link`] says to whoever looks at it.
const TEXT: &[u8] = b"holdfast preflight";

impl<P: PortIo + 'static> Console<P> {
    pub(super) fn preflight(&self, asked: &Preflight) -> Answer {
        let port = self.port(&asked.port)?;
        if !(1..=MAX_PREFLIGHT).contains(&asked.frames) {
            let body = ErrorBody::new(ErrorCode::BadArgument, "so many frames can't be sent");
            let fix = format!("send 1 to {MAX_PREFLIGHT}");
            return Err(body.at("frames").value(asked.frames).limit(MAX_PREFLIGHT).fix(fix));
        }
        let spec = self.board.profile.port(port);
        let enabled =
            |priority: &Priority| spec.is_some_and(|spec| spec.pfc.enabled.contains(*priority));
        let priority = resumed(asked, enabled)?;
        let (kind, frames) = (asked.kind, asked.frames);
        let sent = self.order(move |worker| {
            let mac = worker.port_mut(port).map(|port: &mut Port<P>| port.mac())?;
            let bytes = frame(kind, mac, priority);
            let took = (0..frames).map_while(|_| worker.send_control(port, &bytes));
            Some(took.filter(|took| *took).count() as u8)
        })?;
        match sent.into_iter().flatten().next() {
            Some(sent) => reply(&PreflightReply { sent }),
            None => {
                let body = ErrorBody::new(ErrorCode::Unavailable, "no worker owns the port now");
                Err(body.at("port").value(&asked.port).fix("try again when the port is up"))
            }
        }
    }
}

/// The priority that `resume` names: one without PFC, or it might end a pause that is meant.
fn resumed(
    asked: &Preflight,
    enabled: impl Fn(&Priority) -> bool,
) -> Result<Option<Priority>, ErrorBody> {
    let refused = |message: &str, fix: &str| {
        let body = ErrorBody::new(ErrorCode::BadArgument, message).at("priority").fix(fix);
        match asked.priority {
            Some(priority) => body.value(priority).limit(7),
            None => body,
        }
    };
    match (asked.kind, asked.priority) {
        (PreflightKind::Resume, Some(number)) => {
            let priority = Priority::new(number)
                .ok_or_else(|| refused("there is no such priority", "use 0 to 7"))?;
            if enabled(&priority) {
                let message = "the port has PFC on this priority: it could end a pause";
                return Err(refused(message, "use a priority without PFC"));
            }
            Ok(Some(priority))
        }
        (PreflightKind::Resume, None) => Err(refused("no priority is named", "add `priority`")),
        (_, Some(_)) => Err(refused("only `resume` has a priority", "leave `priority` out")),
        (_, None) => Ok(None),
    }
}

fn frame(kind: PreflightKind, mac: MacAddr, priority: Option<Priority>) -> [u8; FRAME_LEN] {
    let mut bytes = [0; FRAME_LEN];
    let enable = priority.map_or(0, |priority| 1 << priority.index());
    encode_pfc(&mut bytes, mac, enable, &[0; 8]);
    match kind {
        PreflightKind::EmptyVector | PreflightKind::Resume => {}
        PreflightKind::UnknownOpcode => bytes[14..16].copy_from_slice(&UNUSED_OPCODE.to_be_bytes()),
        PreflightKind::Link => {
            bytes[..6].copy_from_slice(&NEAREST_BRIDGE);
            bytes[12..14].copy_from_slice(&EXPERIMENTAL.to_be_bytes());
            bytes[14..14 + TEXT.len()].copy_from_slice(TEXT);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_wire::mac_control::{is_mac_control, parse_mac_control, InvalidKind, MacControl};

    /// Each is read as what it is counted as, and none of them carries a time.
    #[test]
    fn each_frame_is_what_it_is_counted_as() {
        let mac = MacAddr([2, 0, 0, 0, 0, 7]);
        let read = |kind| parse_mac_control(&frame(kind, mac, None));
        assert_eq!(
            read(PreflightKind::UnknownOpcode),
            MacControl::Invalid(InvalidKind::UnknownOpcode)
        );
        assert_eq!(read(PreflightKind::EmptyVector), MacControl::Invalid(InvalidKind::EmptyVector));
        for priority in Priority::all() {
            let bytes = frame(PreflightKind::Resume, mac, Some(priority));
            let enable = 1 << priority.index();
            assert_eq!(parse_mac_control(&bytes), MacControl::Pfc { enable, quanta: [0; 8] });
            assert_eq!(bytes[6..12], mac.0);
        }
        let link = frame(PreflightKind::Link, mac, None);
        assert!(!is_mac_control(&link));
        assert!(MacAddr([1, 0x80, 0xc2, 0, 0, 0x0e]).is_reserved_group());
        assert_eq!(link[..6], NEAREST_BRIDGE);
    }
}
