//! Traffic for the benches from inside the kernel: `send` saturates a netdev with live frames of
//! `BPF_PROG_TEST_RUN`, `sink` counts and drops what comes in at another.
//!
//! A sink also makes its veth receive by XDP, which is what lets the peer transmit natively.

use clap::{Parser, Subcommand};
use holdfast_xsk::Netns;
use libbpf_rs::libbpf_sys::{self, bpf_test_run_opts};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, OpenObject};
use std::error::Error;
use std::mem::{size_of, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[allow(warnings, clippy::all, clippy::restriction, reason = "generated")]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/xdp_bench.skel.rs"));
}

/// `BPF_F_TEST_XDP_LIVE_FRAMES`: the program's verdict is carried out.
const LIVE_FRAMES: u32 = 2;
/// Frames that the kernel runs between two reschedules, at most 256.
const BATCH: u32 = 64;
/// Frames of one system call: a call has a fixed cost of tens of milliseconds.
const REPEAT: u32 = 1_000_000;

/// A source and a sink of frames that cost next to nothing.
#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Sends frames out of a netdev for a while.
    Send {
        /// The netdev as NETNS/IFNAME.
        dev: String,
        /// Bytes of a frame, without FCS.
        #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u16).range(60..=3400))]
        size: u16,
        /// Seconds to send for.
        #[arg(long, default_value_t = 5)]
        seconds: u64,
        /// Destination MAC address.
        #[arg(long, default_value = "02:00:00:00:00:03")]
        to: String,
        /// Source MAC address.
        #[arg(long, default_value = "02:00:00:00:00:01")]
        from: String,
        /// DSCP of the IPv4 header.
        #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..64))]
        dscp: u8,
    },
    /// Counts frames until SIGTERM or SIGINT.
    Sink {
        /// The netdev as NETNS/IFNAME.
        dev: String,
    },
}

fn main() -> Result<(), Box<dyn Error>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    match Options::parse().what {
        What::Send { dev, size, seconds, to, from, dscp } => {
            let frame = frame(usize::from(size), mac(&to)?, mac(&from)?, dscp);
            inside(&dev, |index| send(index, &frame, Duration::from_secs(seconds), &stop))
        }
        What::Sink { dev } => inside(&dev, |index| sink(index, &stop)),
    }
}

/// Does `work` with a netdev's index, inside its namespace: maps and links take a netdev of the
/// namespace that the caller is in.
fn inside(
    dev: &str,
    work: impl FnOnce(i32) -> Result<(), Box<dyn Error>> + Send,
) -> Result<(), Box<dyn Error>> {
    let (netns, ifname) = match dev.rsplit_once('/') {
        Some((netns, ifname)) => (Netns::parse(Some(netns)), ifname),
        None => (Netns::Own, dev),
    };
    let all = || {
        let index = nix::net::if_::if_nametoindex(ifname).map_err(|e| format!("{dev}: {e}"))?;
        work(index as i32).map_err(|e| e.to_string())
    };
    Ok(netns.open()?.run(all)??)
}

fn send(index: i32, frame: &[u8], span: Duration, stop: &AtomicBool) -> Result<(), Box<dyn Error>> {
    let mut storage = MaybeUninit::<OpenObject>::uninit();
    let skel = skeleton::XdpBenchSkelBuilder::default().open(&mut storage)?.load()?;
    let program = skel.progs.bench_source.as_fd().as_raw_fd();
    skel.maps.target.update(&[0; 4], &index.to_ne_bytes(), MapFlags::ANY)?;
    let start = Instant::now();
    let mut frames = 0u64;
    while start.elapsed() < span && !stop.load(Ordering::Relaxed) {
        frames += u64::from(run(program, frame)?);
    }
    let seconds = start.elapsed().as_secs_f64();
    let rate = frames as f64 / seconds;
    println!("{}", serde_json::json!({ "frames": frames, "seconds": seconds, "fps": rate }));
    Ok(())
}

/// Sends [`REPEAT`] frames; fewer if a signal came.
fn run(program: i32, frame: &[u8]) -> std::io::Result<u32> {
    let mut opts = bpf_test_run_opts {
        sz: size_of::<bpf_test_run_opts>() as u64,
        data_in: frame.as_ptr().cast(),
        data_size_in: frame.len() as u32,
        repeat: REPEAT as i32,
        flags: LIVE_FRAMES,
        batch_size: BATCH,
        ..Default::default()
    };
    // SAFETY: `opts` is as large as it says, and `data_in` points to `frame`, which is read only.
    let done = unsafe { libbpf_sys::bpf_prog_test_run_opts(program, &mut opts) };
    match done {
        0 => Ok(REPEAT),
        e if e == -nix::libc::EINTR => Ok(0),
        e => Err(std::io::Error::from_raw_os_error(-e)),
    }
}

fn sink(index: i32, stop: &AtomicBool) -> Result<(), Box<dyn Error>> {
    let mut storage = MaybeUninit::<OpenObject>::uninit();
    let skel = skeleton::XdpBenchSkelBuilder::default().open(&mut storage)?.load()?;
    let _link = skel.progs.bench_sink.attach_xdp(index)?;
    eprintln!("counting");
    let start = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let seconds = start.elapsed().as_secs_f64();
    let sum = |which: u32| -> Result<u64, Box<dyn Error>> {
        let cpus = skel.maps.seen.lookup_percpu(&which.to_ne_bytes(), MapFlags::ANY)?;
        let value = |cpu: &Vec<u8>| cpu.first_chunk().map_or(0, |b| u64::from_ne_bytes(*b));
        Ok(cpus.unwrap_or_default().iter().map(value).sum())
    };
    let (frames, bytes) = (sum(0)?, sum(1)?);
    println!("{}", serde_json::json!({ "frames": frames, "bytes": bytes, "seconds": seconds }));
    Ok(())
}

fn mac(text: &str) -> Result<[u8; 6], String> {
    let wrong = || format!("{text}: not a MAC address like 02:00:00:00:00:01");
    let bytes: Result<Vec<u8>, _> = text.split(':').map(|b| u8::from_str_radix(b, 16)).collect();
    bytes.map_err(|_| wrong())?.try_into().map_err(|_| wrong())
}

/// An IPv4 UDP frame to RoCEv2's port, without payload checksums.
fn frame(size: usize, to: [u8; 6], from: [u8; 6], dscp: u8) -> Vec<u8> {
    let length = ((size - 14) as u16).to_be_bytes();
    let udp = ((size - 34) as u16).to_be_bytes();
    let mut ip = vec![0x45, dscp << 2 | 2, length[0], length[1], 0, 0, 0x40, 0, 64, 17, 0, 0];
    ip.extend([192, 0, 2, 1, 192, 0, 2, 3]);
    let words = ip.chunks_exact(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1]));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    let mut bytes = [to.as_slice(), from.as_slice(), &[0x08, 0x00], &ip].concat();
    bytes.extend([0xc0, 0x00, 0x12, 0xb7, udp[0], udp[1], 0, 0]);
    bytes.resize(size, 0);
    bytes
}
