//! Changed inputs, the same in every run: what a plain test can do without coverage.

use fastrand::Rng;

/// Values at which ranges end, in the widths that formats have.
const EDGES: [u8; 6] = [0, 1, 0x7f, 0x80, 0xfe, 0xff];
/// Pieces that texts and numbers break at.
const PIECES: [&[u8]; 12] = [
    b"\n",
    b"\"",
    b"\\",
    b"[",
    b"{}",
    b"=",
    b"-1",
    b"99999999999999999999",
    b"0.5",
    b"nan",
    b"\xc3",
    b"\r\n\r\n",
];
/// Changes that one input gets at most.
const MOST: usize = 6;

/// Makes inputs from those of a corpus.
pub struct Mutator<'a> {
    seeds: &'a [Vec<u8>],
    max_len: usize,
    random: Rng,
}

impl<'a> Mutator<'a> {
    /// Inputs of at most `max_len` bytes from `seeds`, by the generator's `seed`.
    pub fn new(seeds: &'a [Vec<u8>], max_len: usize, seed: u64) -> Self {
        Self { seeds, max_len, random: Rng::with_seed(seed) }
    }

    /// The next one.
    pub fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.seed().to_vec();
        for _ in 0..=self.random.usize(..MOST) {
            self.change(&mut input);
        }
        input.truncate(self.max_len);
        input
    }

    fn seed(&mut self) -> &'a [u8] {
        &self.seeds[self.random.usize(..self.seeds.len())]
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.random.usize(..=input.len());
        let count = (1 + self.random.usize(..8)).min(input.len() - at);
        match self.random.u8(..8) {
            0 | 1 if at < input.len() => input[at] ^= 1 << self.random.u8(..8),
            2 if at < input.len() => input[at] = EDGES[self.random.usize(..EDGES.len())],
            3 => drop(input.drain(at..at + count)),
            4 => {
                let piece = PIECES[self.random.usize(..PIECES.len())];
                input.splice(at..at, piece.iter().copied());
            }
            5 => {
                let copy = input[at..at + count].to_vec();
                let to = self.random.usize(..=input.len());
                input.splice(to..to, copy);
            }
            6 => {
                let other = self.seed();
                let from = self.random.usize(..=other.len());
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            _ => input.insert(at, self.random.u8(..)),
        }
    }
}
