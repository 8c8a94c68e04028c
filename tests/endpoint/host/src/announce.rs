//! How a host that only receives makes itself known to the switches before it: as hypervisors do
//! for a guest that has moved, by a RARP request for its own address. It needs no IP address.

use crate::time::{Nanos, Time};
use holdfast_wire::MacAddr;

/// EtherType of RARP (RFC 903).
const ETHERTYPE_RARP: u16 = 0x8035;
/// Shortest Ethernet frame without FCS.
const LENGTH: usize = 60;
/// How often it is said again: well within the 300 s after which bridges forget (802.1Q 8.8.3).
const AGAIN: Nanos = Nanos(60_000_000_000);

/// The announcement of one host, and when it is due.
#[derive(Clone, Debug)]
pub struct Announcement {
    frame: [u8; LENGTH],
    due: Option<Time>,
}

impl Announcement {
    /// That of the host with this address, due at once.
    pub fn new(mac: MacAddr) -> Self {
        let mut frame = [0; LENGTH];
        let fields: [&[u8]; 8] = [
            &MacAddr::BROADCAST.0,
            &mac.0,
            &ETHERTYPE_RARP.to_be_bytes(),
            // Hardware Ethernet, protocol IPv4, address lengths, operation "request reverse".
            &[0, 1, 0x08, 0, 6, 4, 0, 3],
            &mac.0,
            &[0; 4],
            &mac.0,
            &[0; 4],
        ];
        let bytes = fields.iter().flat_map(|field| field.iter());
        frame.iter_mut().zip(bytes).for_each(|(at, byte)| *at = *byte);
        Self { frame, due: None }
    }

    /// The frame to send now, if it is time for it; the next one is due 60 s later.
    pub fn due(&mut self, now: Time) -> Option<&[u8]> {
        if self.due.is_some_and(|due| now < due) {
            return None;
        }
        self.due = Some(now + AGAIN);
        Some(&self.frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_rarp_request_for_the_hosts_own_address() {
        let mut announcement = Announcement::new(MacAddr([2, 0, 0, 0, 0, 9]));
        let frame = announcement.due(Time(5)).map(<[u8]>::to_vec).unwrap_or_default();
        let text: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
        let said = concat!(
            "ffffffffffff",
            "020000000009",
            "8035",
            "0001080006040003",
            "020000000009",
            "00000000",
            "020000000009",
            "00000000",
        );
        assert_eq!(text, format!("{said:0<120}"));
    }

    #[test]
    fn it_is_due_at_once_and_every_minute() {
        let mut announcement = Announcement::new(MacAddr([2, 0, 0, 0, 0, 9]));
        let mut sent = Vec::new();
        for second in 0..200u64 {
            if announcement.due(Time(second * 1_000_000_000)).is_some() {
                sent.push(second);
            }
        }
        assert_eq!(sent, [0, 60, 120, 180]);
    }
}
