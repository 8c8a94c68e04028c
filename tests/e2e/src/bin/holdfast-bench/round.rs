//! One contender at one size: netdevs made anew, source and sink in the kernel, a window in the
//! middle of the run.

use crate::contender::{Contender, PORTS};
use crate::report::Sample;
use holdfast_e2e::netns::{connect, Netns, VethEnd, HOST_IFNAME};
use holdfast_e2e::process::{run, Niceness, Process};
use holdfast_e2e::wait::wait_for;
use holdfast_e2e::{binaries, LabError};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(30);
/// The source looks up only after each system call of a million frames.
const SOURCE_ENDS: Duration = Duration::from_secs(120);
/// Before the window: the contender is up, caches are warm.
const WARM_UP: Duration = Duration::from_secs(1);
/// DSCP 26: the lossless class of every shipped profile.
const DSCP: &str = "26";
/// Frames longer than this don't fit the page of a veth that receives by XDP.
const MTU: u16 = 1500;

/// Measures; everything that was made is gone afterwards.
pub fn measure(contender: Contender, size: u16, seconds: u8) -> Result<Sample, LabError> {
    let folder = tempfile::tempdir()
        .map_err(|source| LabError::File { path: "temporary folder".into(), source })?;
    let name = |part: &str| format!("holdfast-bench-{}-{part}", std::process::id());
    let (h1, sw, h3) =
        (Netns::create(&name("h1"))?, Netns::create(&name("sw"))?, Netns::create(&name("h3"))?);
    for (host, number, port) in [(&h1, 1, PORTS[0]), (&h3, 3, PORTS[1])] {
        let mac = |first: u8| format!("{first:02x}:00:00:00:00:{number:02x}");
        let (inside, outside) = (mac(0x02), mac(0x06));
        let ends = [
            VethEnd { netns: host, ifname: HOST_IFNAME, mac: &inside },
            VethEnd { netns: &sw, ifname: port, mac: &outside },
        ];
        connect(ends, MTU)?;
    }
    let generator = binaries::find("examples/generator")?;
    let mut sink = Command::new(&generator);
    sink.args(["sink", &format!("{}/{HOST_IFNAME}", h3.name())]);
    let mut sink = Process::start("sink", Niceness::Host, &sink, folder.path())?;
    wait_for("the sink doesn't start", SOON, || {
        Ok(sink.log_tail().contains("counting").then_some(()))
    })?;
    let command = contender.command(sw.name(), folder.path())?;
    let mut forwarder =
        Process::start(contender.name(), Niceness::Switch, &command, folder.path())?;
    wait_until_it_forwards(contender, &mut forwarder)?;
    let source = source_command(&generator, h1.name(), size, seconds);
    let mut source = Process::start("source", Niceness::Host, &source, folder.path())?;
    sleep(WARM_UP);
    let sample = window(contender, size, seconds, &sw, forwarder.pid())?;
    source.signal(Signal::SIGTERM);
    source.wait(SOURCE_ENDS)?;
    for process in [&mut forwarder, &mut sink] {
        process.signal(Signal::SIGTERM);
        process.wait(SOON)?;
    }
    if sample.frames_per_second < 1.0 {
        let (line, output) = (contender.name().to_owned(), forwarder.log_tail());
        return Err(LabError::Failed { line, status: "no frame came through".into(), output });
    }
    Ok(sample)
}

fn source_command(generator: &Path, host: &str, size: u16, seconds: u8) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", "0"]).arg(generator).arg("send");
    command.arg(format!("{host}/{HOST_IFNAME}"));
    let span = u64::from(seconds) + WARM_UP.as_secs() + 2;
    command.args(["--size", &size.to_string(), "--seconds", &span.to_string(), "--dscp", DSCP]);
    command
}

fn wait_until_it_forwards(contender: Contender, process: &mut Process) -> Result<(), LabError> {
    match contender.ready() {
        Some(word) => wait_for("the contender doesn't start", SOON, || {
            let log = process.log_tail();
            match process.status()? {
                Some(status) => Err(LabError::Failed {
                    line: contender.name().to_owned(),
                    status: status.to_string(),
                    output: log,
                }),
                None => Ok(log.contains(word).then_some(())),
            }
        }),
        None => wait_for("testpmd doesn't start", SOON, || {
            Ok(process.output().contains("Logical Core").then_some(()))
        }),
    }
}

/// Frames that left the switch's second netdev and CPU time of the contender, over the window.
fn window(
    contender: Contender,
    size: u16,
    seconds: u8,
    sw: &Netns,
    pid: u32,
) -> Result<Sample, LabError> {
    let (start, frames, cpu) = (Instant::now(), frames_out(sw)?, cpu_ns(pid));
    sleep(Duration::from_secs(u64::from(seconds)));
    let (span, frames, cpu) = (start.elapsed(), frames_out(sw)? - frames, cpu_ns(pid) - cpu);
    Ok(Sample {
        contender,
        size,
        frames_per_second: frames as f64 / span.as_secs_f64(),
        cpu_ns_per_frame: cpu as f64 / frames.max(1) as f64,
    })
}

fn frames_out(sw: &Netns) -> Result<u64, LabError> {
    let text = run(sw.ip().args(["-s", "-j", "link", "show", "dev", PORTS[1]]))?;
    let value: Value = serde_json::from_str(&text).unwrap_or_default();
    Ok(value[0]["stats64"]["tx"]["packets"].as_u64().unwrap_or_default())
}

/// User and system time of a process, all threads; 0 if it is gone.
fn cpu_ns(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // Behind the command's closing bracket come the fields from the third on.
    let fields: Vec<&str> =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |field: usize| fields.get(field).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
    let hertz = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK);
    let hertz = hertz.ok().flatten().and_then(|n| u64::try_from(n).ok()).unwrap_or(100);
    (ticks(11) + ticks(12)) * (1_000_000_000 / hertz)
}
