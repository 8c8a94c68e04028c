//! What tshark, which knows nothing of us, says about frames.

use crate::process::run;
use crate::{Captured, LabError};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Magic number of a classic capture file with nanoseconds.
const PCAP_NANOSECONDS: u32 = 0xa1b2_3c4d;
const LINKTYPE_ETHERNET: u32 = 1;

/// Writes a capture file.
///
/// # Errors
/// [`LabError::File`].
pub fn write_pcap(frames: &[Captured], path: &Path) -> Result<(), LabError> {
    let mut file = Vec::new();
    let mut put = |words: &[u32]| words.iter().for_each(|word| file.extend(word.to_le_bytes()));
    // Version 2.4, time zone 0, accuracy 0, snap length.
    put(&[PCAP_NANOSECONDS, 0x0004_0002, 0, 0, 65_535, LINKTYPE_ETHERNET]);
    for frame in frames {
        let word = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let len = word(frame.bytes.len() as u64);
        let (seconds, rest) = (frame.time_ns / 1_000_000_000, frame.time_ns % 1_000_000_000);
        for value in [word(seconds), word(rest), len, len] {
            file.extend(value.to_le_bytes());
        }
        file.extend(&frame.bytes);
    }
    fs::write(path, file).map_err(|source| LabError::File { path: path.to_path_buf(), source })
}

/// Decodes frames; one row a frame with the fields asked for, as tshark prints them.
///
/// # Errors
/// [`LabError::File`], or what tshark says.
pub fn decode(
    frames: &[Captured],
    fields: &[&str],
    folder: &Path,
) -> Result<Vec<Vec<String>>, LabError> {
    let path = folder.join("decode.pcap");
    write_pcap(frames, &path)?;
    let mut command = Command::new("tshark");
    command.arg("-r").arg(&path);
    command.args(["-o", "udp.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"]);
    command.args(["-T", "fields", "-E", "separator=/t"]);
    fields.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let text = run(&mut command)?;
    Ok(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
}
