//! The send time in a frame's payload.
//!
//! The first eight payload bytes, big-endian nanoseconds; its low four where only four fit, which
//! still tell any latency below 2.14 seconds. A frame is never younger than 0: two clocks that are
//! read one after the other may disagree a little.

use core::ops::Range;

use crate::time::{Nanos, Time};

/// Writes the time as far as the payload has room for it.
pub(crate) fn write(frame: &mut [u8], payload: Range<usize>, now: Time) {
    let Some(payload) = frame.get_mut(payload) else { return };
    if let Some(field) = payload.first_chunk_mut::<8>() {
        *field = now.0.to_be_bytes();
    } else if let Some(field) = payload.first_chunk_mut::<4>() {
        *field = (now.0 as u32).to_be_bytes();
    }
}

/// The age of a frame; `None` if its payload has no room for a time.
pub(crate) fn age(payload: &[u8], now: Time) -> Option<Nanos> {
    if let Some(field) = payload.first_chunk::<8>() {
        return Some(now.since(Time(u64::from_be_bytes(*field))));
    }
    let field = payload.first_chunk::<4>()?;
    let age = (now.0 as u32).wrapping_sub(u32::from_be_bytes(*field)) as i32;
    Some(Nanos(u64::from(age.max(0).unsigned_abs())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_survive_in_eight_and_in_four_bytes() {
        let sent = Time((7 << 32) - 5);
        for (room, expected) in [(8, Some(Nanos(1005))), (4, Some(Nanos(1005))), (3, None)] {
            let mut frame = [0; 16];
            write(&mut frame, 2..2 + room, sent);
            assert_eq!(age(&frame[2..2 + room], sent + Nanos(1005)), expected, "{room} bytes");
            assert_eq!(frame[..2], [0, 0]);
            assert!(frame[2 + room..].iter().all(|&byte| byte == 0));
        }
        write(&mut [0; 4], 2..12, sent);
        for room in [8, 4] {
            let mut frame = [0; 8];
            write(&mut frame, 0..room, sent);
            assert_eq!(age(&frame[..room], sent.before(Nanos(3))), Some(Nanos(0)));
        }
    }
}
