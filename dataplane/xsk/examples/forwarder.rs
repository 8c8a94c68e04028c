//! The bare AF_XDP forwarder: what comes in at one port goes out at the other, as fast as the
//! rings allow, without any switch logic. The baseline of the benches.
//!
//! Spins until SIGTERM or SIGINT, then prints frames and CPU time as JSON.

use clap::Parser;
use holdfast_core::frame::FrameHandle;
use holdfast_core::io::{FramePool, PortIo, Received, BURST};
use holdfast_xsk::{
    chunks_needed, open_port, wait, Layout, Memory, Netns, PortConfig, PortNeed, RingSizes,
    XskPool, XskPort,
};
use nix::time::{clock_gettime, ClockId};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// Forwards between two netdevs over AF_XDP and does nothing else.
#[derive(Parser)]
struct Options {
    /// A port as NETNS/IFNAME, or IFNAME in the own namespace: give it twice.
    #[arg(long = "port", value_name = "NETNS/IFNAME", required = true, num_args = 1)]
    ports: Vec<String>,
    /// Sleep in poll when there is nothing to do, instead of spinning.
    #[arg(long)]
    poll: bool,
    /// Entries of the RX and fill rings.
    #[arg(long, default_value_t = RingSizes::default().rx)]
    rx_ring: u32,
    /// Entries of the TX and completion rings.
    #[arg(long, default_value_t = RingSizes::default().tx)]
    tx_ring: u32,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = Options::parse();
    let rings = RingSizes {
        rx: options.rx_ring,
        fill: options.rx_ring,
        tx: options.tx_ring,
        completion: options.tx_ring,
    };
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let [first, second] = &options.ports[..] else {
        return Err("two ports are needed: --port A --port B".into());
    };
    let queues = 1;
    // A frame that is being sent holds one chunk, or three if it is a jumbo frame.
    let in_flight = holdfast_core::units::Cells(2 * 3 * rings.tx);
    let none = holdfast_core::units::Cells::ZERO;
    let needs = [PortNeed { queues, rings }; 2];
    let chunks = chunks_needed(in_flight, none, &needs) as u32;
    let (memory, mut pools) = Memory::new(&Layout::even(chunks, 1)?)?;
    let mut pool = pools.pop().ok_or("no pool")?;
    let mut opened = Vec::new();
    for text in [first, second] {
        opened.push(open_port(&memory, &port_config(text, rings))?);
    }
    let (mut ports, guards): (Vec<XskPort>, Vec<_>) = opened.into_iter().unzip();
    ports.iter_mut().for_each(|port| port.refill(&mut pool, 0));
    eprintln!("forwarding between {first} and {second}");

    let cpu = || clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map(Duration::from);
    let start = cpu()?;
    let mut run = Run { burst: Vec::with_capacity(BURST), done: Vec::with_capacity(BURST) };
    let (mut frames, mut dropped) = (0u64, 0u64);
    while !stop.load(Ordering::Relaxed) {
        let (sent, lost) = run.round(&mut ports, &mut pool);
        (frames, dropped) = (frames + sent, dropped + lost);
        if options.poll && sent + lost == 0 {
            let fds: Vec<_> = ports.iter().flat_map(XskPort::fds).collect();
            wait(&fds, Some(Duration::from_millis(100)))?;
        }
    }
    let spent = cpu()?.saturating_sub(start);
    let overruns = ports.iter().map(|port| Ok(port.stats()?.receive_overruns()));
    let overruns: u64 = overruns.sum::<std::io::Result<u64>>()?;
    let report = serde_json::json!({
        "frames": frames,
        "tx_full_drops": dropped,
        "receive_overruns": overruns,
        "cpu_ns": spent.as_nanos() as u64,
        "cpu_ns_per_frame": spent.as_nanos() as f64 / frames.max(1) as f64,
        "xdp": guards.iter().map(|g| format!("{:?}", g.status().xdp)).collect::<Vec<_>>(),
    });
    println!("{report}");
    Ok(())
}

fn port_config(text: &str, rings: RingSizes) -> PortConfig {
    let (netns, ifname) = match text.rsplit_once('/') {
        Some((netns, ifname)) => (Netns::parse(Some(netns)), ifname),
        None => (Netns::Own, text),
    };
    PortConfig { netns, ifname: ifname.to_owned(), queues: Some(1), rings, ..PortConfig::default() }
}

/// What a round needs and what isn't allocated anew each time.
struct Run {
    burst: Vec<Received>,
    done: Vec<u64>,
}

impl Run {
    /// One burst each way; returns frames sent and frames for which there was no room.
    fn round(&mut self, ports: &mut [XskPort], pool: &mut XskPool) -> (u64, u64) {
        let [one, two] = ports else { return (0, 0) };
        let (there, back) = (self.one_way(one, two, pool), self.one_way(two, one, pool));
        (there.0 + back.0, there.1 + back.1)
    }

    fn one_way(&mut self, from: &mut XskPort, to: &mut XskPort, pool: &mut XskPool) -> (u64, u64) {
        let (mut sent, mut dropped) = (0, 0);
        from.receive(pool, &mut self.burst);
        for Received { handle, len } in self.burst.drain(..) {
            let chunk = handle.chunk();
            if to.transmit(pool, chunk, len, u64::from(chunk)) {
                sent += 1;
            } else {
                pool.free(handle);
                dropped += 1;
            }
        }
        if to.held().tx > 0 {
            to.kick();
            to.completions(&mut self.done);
        }
        for chunk in self.done.drain(..) {
            pool.free(FrameHandle::own(chunk as u32));
        }
        from.refill(pool, 0);
        (sent, dropped)
    }
}
