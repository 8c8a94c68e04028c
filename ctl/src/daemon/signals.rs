//! Signals as something that can be polled: each writes a byte into its socket pair.

use mio::net::UnixStream;
use mio::{Interest, Registry, Token};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;
use std::io::{self, Read};
use std::os::unix::net::UnixStream as Pair;

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// SIGTERM, SIGINT: to end.
    End,
    /// SIGHUP: to read the profile again.
    Reload,
}

/// The ends that are read.
#[derive(Debug)]
pub(crate) struct Signals {
    end: UnixStream,
    reload: UnixStream,
    ready: bool,
}

impl Signals {
    /// From now on these signals don't end the process.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn new() -> io::Result<Self> {
        let (end, reload) = (reader(&[SIGTERM, SIGINT])?, reader(&[SIGHUP])?);
        Ok(Self { end, reload, ready: true })
    }

    /// Has them polled, all under one token.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(&mut self.end, token, Interest::READABLE)?;
        registry.register(&mut self.reload, token, Interest::READABLE)
    }

    /// The poll says that one has come.
    pub(crate) fn ready(&mut self) {
        self.ready = true;
    }

    /// What they ask for; several of one kind are one.
    pub(crate) fn take(&mut self) -> Vec<Wish> {
        if !core::mem::take(&mut self.ready) {
            return Vec::new();
        }
        let mut wishes = Vec::new();
        for (stream, wish) in [(&mut self.end, Wish::End), (&mut self.reload, Wish::Reload)] {
            let mut bytes = [0; 64];
            let mut came = false;
            while stream.read(&mut bytes).is_ok_and(|count| count > 0) {
                came = true;
            }
            if came {
                wishes.push(wish);
            }
        }
        wishes
    }
}

fn reader(signals: &[i32]) -> io::Result<UnixStream> {
    let (read, write) = Pair::pair()?;
    read.set_nonblocking(true)?;
    for signal in signals {
        pipe::register(*signal, write.try_clone()?)?;
    }
    Ok(UnixStream::from_std(read))
}
