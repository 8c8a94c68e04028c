//! `capture`: every frame that arrives, MAC control included, with its VLAN tags in place.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::fd::AsFd;
use std::path::Path;

use holdfast_host::{Nanos, Time};
use nix::poll::{ppoll, PollFd, PollFlags};
use serde::Serialize;

use crate::cli::CaptureArgs;
use crate::clock::{now, timespec, StopSignal};
use crate::link::{Inlet, Link, DATA_BURST, EVERY_PROTOCOL};
use crate::report::{announce, deliver, EndedBy, ReportError};
use crate::EndpointError;

/// Socket buffer in bytes: what a disk that stalls for a second may need.
const BUFFER: usize = 256 << 20;
/// How often the end conditions are looked at when nothing arrives.
const LOOK: Nanos = Nanos(50_000_000);

/// How long frames are still read after the end, if they never stop coming.
const LAST_READ: Nanos = Nanos(200_000_000);

/// The report of `capture`.
#[derive(Debug, Serialize)]
struct CaptureReport {
    interface: String,
    ended_by: EndedBy,
    duration_ns: u64,
    captured: u64,
    socket_drops: u64,
}

/// One frame in the JSON form.
#[derive(Debug, Serialize)]
struct CapturedFrame<'a> {
    t_ns: u64,
    len: usize,
    hex: &'a str,
}

/// Writes frames to the file until an end condition holds; what has arrived by then is kept.
pub(crate) fn run(args: &CaptureArgs) -> Result<(), EndpointError> {
    let stop = StopSignal::listen().map_err(EndpointError::Signals)?;
    let link = Link::find(&args.interface)?;
    let protocol = args.ethertype.unwrap_or(EVERY_PROTOCOL);
    let mut inlet = Inlet::open(&link, protocol, DATA_BURST, BUFFER)?;
    let mut book = Book::open(args)?;
    announce(&link)?;
    let start = now();
    let end = args.seconds.map(|span| start + span);
    let mut over = None;
    let ended_by = loop {
        // Looked at before the socket, so that its last frames are read after the end.
        let ended = if stop.is_set() {
            Some(EndedBy::Signal)
        } else if end.is_some_and(|end| now() >= end) {
            Some(EndedBy::Seconds)
        } else {
            None
        };
        let count = inlet.receive(|arrived, frame| book.note(arrived, frame))?;
        if book.full() {
            break EndedBy::Count;
        }
        match ended {
            Some(reason) => {
                let late = now().since(*over.get_or_insert_with(now)) >= LAST_READ;
                if count == 0 || late {
                    break reason;
                }
            }
            None if count == 0 => wait(&inlet),
            None => {}
        }
    };
    let report = CaptureReport {
        interface: link.name().to_owned(),
        ended_by,
        duration_ns: now().since(start).0,
        captured: book.frames,
        socket_drops: inlet.count_drops()?,
    };
    book.close()?;
    Ok(deliver(&report, None)?)
}

fn wait(inlet: &Inlet) {
    let mut fds = [PollFd::new(inlet.as_fd(), PollFlags::POLLIN)];
    // Interrupted or not, the caller looks at everything again.
    let _ = ppoll(&mut fds, Some(timespec(LOOK)), None);
}

fn hex_digit(nibble: u8) -> char {
    char::from(if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 })
}

/// The file that frames are written to.
struct Book<'a> {
    path: &'a Path,
    out: BufWriter<File>,
    json: bool,
    snap: usize,
    most: u64,
    frames: u64,
    hex: String,
    failure: Option<std::io::Error>,
}

impl<'a> Book<'a> {
    fn open(args: &'a CaptureArgs) -> Result<Self, ReportError> {
        let path = args.json.as_deref().or(args.hex.as_deref()).unwrap_or(Path::new("/dev/null"));
        let file = File::create(path).map_err(|source| ReportError::file(path, source))?;
        Ok(Self {
            path,
            out: BufWriter::with_capacity(1 << 20, file),
            json: args.json.is_some(),
            snap: args.snap.unwrap_or(usize::MAX),
            most: args.count.unwrap_or(u64::MAX),
            frames: 0,
            hex: String::new(),
            failure: None,
        })
    }

    fn full(&self) -> bool {
        self.frames >= self.most || self.failure.is_some()
    }

    /// Writes one frame, unless there are enough.
    fn note(&mut self, arrived: Time, frame: &[u8]) {
        if self.full() {
            return;
        }
        self.hex.clear();
        for byte in frame.iter().take(self.snap) {
            self.hex.extend([byte >> 4, byte & 15].map(hex_digit));
        }
        let written = if self.json {
            let line = CapturedFrame { t_ns: arrived.0, len: frame.len(), hex: &self.hex };
            serde_json::to_writer(&mut self.out, &line)
                .map_err(std::io::Error::from)
                .and_then(|()| self.out.write_all(b"\n"))
        } else {
            writeln!(self.out, "{} : {}", arrived.0, self.hex)
        };
        match written {
            Ok(()) => self.frames += 1,
            Err(error) => self.failure = Some(error),
        }
    }

    fn close(mut self) -> Result<(), ReportError> {
        let flushed = self.out.flush();
        let outcome = self.failure.map_or(flushed, Err);
        outcome.map_err(|source| ReportError::file(self.path, source))
    }
}
