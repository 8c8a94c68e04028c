//! The base transport header (IBTA volume 1, 9.2; FECN and BECN by annex A17).

use super::BTH_LEN;

/// The 24 bits of a packet sequence number.
pub const PSN_MASK: u32 = 0x00ff_ffff;
/// The 24 bits of a queue pair number.
pub const QP_MASK: u32 = 0x00ff_ffff;

/// Opcodes that the endpoint sends.
pub mod opcode {
    /// Reliable connection, SEND Only.
    pub const RC_SEND_ONLY: u8 = 0x04;
    /// Reliable connection, RDMA WRITE Only.
    pub const RC_WRITE_ONLY: u8 = 0x0a;
    /// Unreliable datagram, SEND Only.
    pub const UD_SEND_ONLY: u8 = 0x64;
    /// Congestion notification packet (annex A17).
    pub const CNP: u8 = 0x81;
}

/// A base transport header, field by field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Bth {
    /// What follows, and what to do with it.
    pub opcode: u8,
    /// Solicited event.
    pub solicited: bool,
    /// Migration state.
    pub mig_req: bool,
    /// Bytes of padding behind the payload, 0 to 3.
    pub pad: u8,
    /// Transport header version, 4 bits.
    pub version: u8,
    /// Partition key.
    pub pkey: u16,
    /// Forward explicit congestion notification.
    pub fecn: bool,
    /// Backward explicit congestion notification; set in a CNP.
    pub becn: bool,
    /// Destination queue pair, 24 bits.
    pub dest_qp: u32,
    /// An acknowledgement is asked for.
    pub ack_req: bool,
    /// Packet sequence number, 24 bits.
    pub psn: u32,
}

impl Bth {
    /// Reads the twelve bytes of the wire. Reserved bits are ignored.
    pub const fn from_bytes(bytes: &[u8; BTH_LEN]) -> Self {
        let [opcode, flags, k0, k1, cong, q0, q1, q2, ack, p0, p1, p2] = *bytes;
        Self {
            opcode,
            solicited: flags & 0x80 != 0,
            mig_req: flags & 0x40 != 0,
            pad: flags >> 4 & 3,
            version: flags & 0x0f,
            pkey: u16::from_be_bytes([k0, k1]),
            fecn: cong & 0x80 != 0,
            becn: cong & 0x40 != 0,
            dest_qp: u32::from_be_bytes([0, q0, q1, q2]),
            ack_req: ack & 0x80 != 0,
            psn: u32::from_be_bytes([0, p0, p1, p2]),
        }
    }

    /// The twelve bytes of the wire. Bits beyond a field's width are cut off.
    pub const fn to_bytes(self) -> [u8; BTH_LEN] {
        let flags = (self.solicited as u8) << 7
            | (self.mig_req as u8) << 6
            | (self.pad & 3) << 4
            | self.version & 0x0f;
        let [k0, k1] = self.pkey.to_be_bytes();
        let cong = (self.fecn as u8) << 7 | (self.becn as u8) << 6;
        let [_, q0, q1, q2] = self.dest_qp.to_be_bytes();
        let ack = (self.ack_req as u8) << 7;
        let [_, p0, p1, p2] = self.psn.to_be_bytes();
        [self.opcode, flags, k0, k1, cong, q0, q1, q2, ack, p0, p1, p2]
    }
}
