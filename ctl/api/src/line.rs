//! Framing of the control socket: lines of at most 1 MiB, however the bytes arrive.

use thiserror::Error;

/// The longest line, newline included (SPEC 11).
pub const MAX_LINE: usize = 1 << 20;

/// A line didn't end within [`MAX_LINE`] bytes. The rest of the stream has no meaning: answer
/// with the code `too_long` and close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a line is longer than {MAX_LINE} bytes")]
pub struct LineTooLong;

/// Collects bytes and gives lines back. Holds at most one unfinished line plus one push.
#[derive(Debug, Default)]
pub struct LineBuffer {
    bytes: Vec<u8>,
    /// Where the next line starts: what lies before was given out.
    start: usize,
    /// Bytes before this are known to hold no newline from `start` on.
    searched: usize,
}

impl LineBuffer {
    /// Nothing collected.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what was read from the stream. Take all lines with [`Self::next_line`] before the
    /// next push, so that the buffer stays bounded.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole line without its newline; `None` if it hasn't ended yet.
    ///
    /// # Errors
    /// [`LineTooLong`] if it has not ended, or ends, beyond [`MAX_LINE`] bytes.
    pub fn next_line(&mut self) -> Result<Option<Vec<u8>>, LineTooLong> {
        let unsearched = self.bytes.get(self.searched..).unwrap_or_default();
        let Some(found) = unsearched.iter().position(|byte| *byte == b'\n') else {
            // Only here, once a push, are given-out lines cut off: never once a line.
            self.bytes.drain(..self.start);
            self.start = 0;
            self.searched = self.bytes.len();
            // Without its newline the line is already as long as a whole one may be.
            return if self.bytes.len() >= MAX_LINE { Err(LineTooLong) } else { Ok(None) };
        };
        let end = self.searched + found;
        if end - self.start >= MAX_LINE {
            return Err(LineTooLong);
        }
        let line = self.bytes.get(self.start..end).unwrap_or_default().to_vec();
        self.start = end + 1;
        self.searched = self.start;
        Ok(Some(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(buffer: &mut LineBuffer) -> Vec<String> {
        let mut out = Vec::new();
        while let Some(line) = buffer.next_line().unwrap() {
            out.push(String::from_utf8(line).unwrap());
        }
        out
    }

    #[test]
    fn lines_come_out_whole_however_they_are_cut() {
        let stream = b"one\n\ntwo\nthree";
        for cut in 1..stream.len() {
            let mut buffer = LineBuffer::new();
            let mut got = Vec::new();
            for part in stream.chunks(cut) {
                buffer.push(part);
                got.extend(lines(&mut buffer));
            }
            assert_eq!(got, ["one", "", "two"], "cut {cut}");
        }
    }

    #[test]
    fn the_limit_is_one_mebibyte_with_its_newline() {
        let mut buffer = LineBuffer::new();
        buffer.push(&vec![b'x'; MAX_LINE - 1]);
        assert_eq!(buffer.next_line(), Ok(None));
        buffer.push(b"\n");
        assert_eq!(buffer.next_line().map(|line| line.map(|l| l.len())), Ok(Some(MAX_LINE - 1)));
        buffer.push(&vec![b'x'; MAX_LINE]);
        assert_eq!(buffer.next_line(), Err(LineTooLong));
        let mut buffer = LineBuffer::new();
        buffer.push(&vec![b'x'; MAX_LINE]);
        buffer.push(b"\n");
        assert_eq!(buffer.next_line(), Err(LineTooLong));
    }
}
