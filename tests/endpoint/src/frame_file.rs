//! Frames from files: lines of hex, or a classic pcap capture.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Bytes in front of the first record of a pcap file.
const PCAP_HEADER: usize = 24;
/// Bytes in front of each frame.
const PCAP_RECORD: usize = 16;
/// The link type of Ethernet.
const LINKTYPE_ETHERNET: u32 = 1;
/// Largest frame that is read.
const FRAME_MAX: usize = 65_535;

/// A frame to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedFrame {
    /// From the file; its number for a capture.
    pub(crate) name: String,
    /// As on the wire, no FCS.
    pub(crate) bytes: Vec<u8>,
}

/// Why a file holds no frames.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameFileError {
    /// It can't be read.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A line isn't "name : hex".
    #[error("{path}: line {line} is not \"name : hex\" with an even number of hex digits")]
    Line {
        /// The file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
    },
    /// Not a classic pcap file of Ethernet frames, or cut short.
    #[error("{path}: not a classic pcap file of whole Ethernet frames: wrong at byte {at}")]
    Pcap {
        /// The file.
        path: PathBuf,
        /// Where it stops making sense.
        at: usize,
    },
    /// Nothing to send.
    #[error("{path}: no frame to send")]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// Reads the frames of a hex file whose name contains `only`.
pub(crate) fn read_hex(path: &Path, only: &str) -> Result<Vec<NamedFrame>, FrameFileError> {
    let read = |source| FrameFileError::Read { path: path.to_owned(), source };
    let text = fs::read_to_string(path).map_err(read)?;
    let mut frames = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let frame = hex_line(line)
            .ok_or_else(|| FrameFileError::Line { path: path.to_owned(), line: index + 1 })?;
        if frame.name.contains(only) {
            frames.push(frame);
        }
    }
    not_empty(frames, path)
}

fn hex_line(line: &str) -> Option<NamedFrame> {
    let (name, hex) = line.rsplit_once(" : ").unwrap_or(("", line));
    let digits: Vec<u8> = hex
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).map(|digit| digit as u8))
        .collect::<Option<_>>()?;
    let pairs = digits.chunks_exact(2);
    if digits.is_empty() || !pairs.remainder().is_empty() || digits.len() > 2 * FRAME_MAX {
        return None;
    }
    let bytes = pairs.map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect();
    Some(NamedFrame { name: name.trim().to_owned(), bytes })
}

/// Reads the frames of a classic pcap file (either byte order, micro- or nanoseconds).
pub(crate) fn read_pcap(path: &Path) -> Result<Vec<NamedFrame>, FrameFileError> {
    let read = |source| FrameFileError::Read { path: path.to_owned(), source };
    let bytes = fs::read(path).map_err(read)?;
    let frames =
        pcap_frames(&bytes).map_err(|at| FrameFileError::Pcap { path: path.to_owned(), at })?;
    not_empty(frames, path)
}

/// The frames, or where the file is wrong.
fn pcap_frames(file: &[u8]) -> Result<Vec<NamedFrame>, usize> {
    let word = |at: usize| file.get(at..)?.first_chunk::<4>().copied();
    let big = match word(0).map(u32::from_be_bytes) {
        Some(0xa1b2_c3d4 | 0xa1b2_3c4d) => true,
        Some(0xd4c3_b2a1 | 0x4d3c_b2a1) => false,
        _ => return Err(0),
    };
    let number = |at: usize| {
        let read = if big { u32::from_be_bytes } else { u32::from_le_bytes };
        word(at).map(read)
    };
    // The upper bits of the link type say whether an FCS is there: it must not be.
    if number(20) != Some(LINKTYPE_ETHERNET) {
        return Err(20);
    }
    let (mut frames, mut at) = (Vec::new(), PCAP_HEADER);
    while at < file.len() {
        let (kept, whole) = (number(at + 8).ok_or(at)?, number(at + 12).ok_or(at)?);
        let len = usize::try_from(kept).ok().filter(|&len| len <= FRAME_MAX && kept == whole);
        let start = at + PCAP_RECORD;
        let bytes = len.and_then(|len| file.get(start..start + len)).ok_or(at)?;
        frames.push(NamedFrame { name: frames.len().to_string(), bytes: bytes.to_vec() });
        at = start + bytes.len();
    }
    Ok(frames)
}

fn not_empty(frames: Vec<NamedFrame>, path: &Path) -> Result<Vec<NamedFrame>, FrameFileError> {
    if frames.is_empty() {
        return Err(FrameFileError::Empty { path: path.to_owned() });
    }
    Ok(frames)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_lines() {
        let frame = hex_line("a name : with colon : 00ff 1A").unwrap();
        assert_eq!(
            (frame.name.as_str(), &frame.bytes[..]),
            ("a name : with colon", &[0, 255, 26][..])
        );
        assert_eq!(hex_line("0102").unwrap().bytes, [1, 2]);
        for bad in ["x : 123", "x : 1g", "x : ", "x :"] {
            assert_eq!(hex_line(bad), None, "{bad}");
        }
    }

    /// A capture of two frames.
    fn capture(word: fn(u32) -> [u8; 4]) -> Vec<u8> {
        let mut file = Vec::new();
        let words = [0xa1b2_c3d4, 0x0002_0004, 0, 0, 65_535, 1];
        words.iter().for_each(|&number| file.extend(word(number)));
        for frame in [&[1, 2, 3][..], &[4; 60]] {
            let len = frame.len() as u32;
            [7, 8, len, len].iter().for_each(|&number| file.extend(word(number)));
            file.extend(frame);
        }
        file
    }

    #[test]
    fn pcap_in_both_byte_orders_and_cut_at_every_byte() {
        for word in [u32::to_be_bytes as fn(u32) -> [u8; 4], u32::to_le_bytes] {
            let file = capture(word);
            let frames = pcap_frames(&file).unwrap();
            assert_eq!(frames.len(), 2);
            assert_eq!(frames[0].bytes, [1, 2, 3]);
            assert_eq!((frames[1].name.as_str(), frames[1].bytes.len()), ("1", 60));
            for len in 0..file.len() {
                let whole = len == 24 || len == 24 + 19;
                assert_eq!(pcap_frames(&file[..len]).is_ok(), whole, "{len} bytes");
            }
        }
        let mut other = capture(u32::to_be_bytes);
        other[23] = 113;
        assert_eq!(pcap_frames(&other), Err(20));
    }
}
