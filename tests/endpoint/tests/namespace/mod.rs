//! Two network namespaces joined by a veth pair, and the endpoint's binary in them.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::Value;

/// MAC of the first end.
pub(crate) const MAC_A: &str = "02:00:00:00:00:01";
/// MAC of the second end.
pub(crate) const MAC_B: &str = "02:00:00:00:00:02";

static NUMBER: AtomicU32 = AtomicU32::new(0);

fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status().expect("iproute2");
    assert!(status.success(), "ip {arguments}");
}

/// What starts a program in a namespace.
fn entering(netns: &str) -> Command {
    let mut command = Command::new("nsenter");
    command.args([&format!("--net=/run/netns/{netns}"), "--"]);
    command
}

/// One end of a pair.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    A,
    B,
}

/// Namespaces named after this process; removed when this goes, after a failure too.
pub(crate) struct Pair {
    names: [String; 2],
}

impl Pair {
    /// Interfaces `veth0` in both, up, MTU 9000, without addresses.
    pub(crate) fn new() -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = |end| format!("hfe{}-{number}{end}", std::process::id());
        let pair = Self { names: [name('a'), name('b')] };
        let [a, b] = &pair.names;
        for end in [a, b] {
            ip(&format!("netns add {end}"));
            // Nothing but what the test sends: no neighbour discovery.
            let quiet = "net.ipv6.conf.default.disable_ipv6=1";
            let status = entering(end).args(["sysctl", "-qw", quiet]).status().expect("sysctl");
            assert!(status.success());
        }
        ip(&format!("-n {a} link add veth0 type veth peer name veth0 netns {b}"));
        for (end, mac) in [(a, MAC_A), (b, MAC_B)] {
            ip(&format!("-n {end} link set veth0 address {mac} mtu 9000 up"));
        }
        pair
    }

    fn name(&self, end: End) -> &str {
        &self.names[end as usize]
    }

    fn command(&self, end: End, arguments: &[&str]) -> Command {
        let mut command = entering(self.name(end));
        command.arg(env!("CARGO_BIN_EXE_holdfast-endpoint")).args(arguments);
        command
    }

    /// Starts the endpoint at one end and waits until it says that it is ready.
    pub(crate) fn start(&self, end: End, arguments: &[&str]) -> Running {
        let child = self.command(end, arguments).stdout(Stdio::piped()).spawn().expect("endpoint");
        let mut running = Running { child, out: None };
        let mut out = BufReader::new(running.child.stdout.take().expect("piped"));
        let mut line = String::new();
        out.read_line(&mut line).expect("ready line");
        running.out = Some(out);
        let ready: Value = serde_json::from_str(&line).expect("a JSON object");
        assert_eq!((&ready["ready"], &ready["interface"]), (&true.into(), &"veth0".into()));
        running
    }

    /// Runs the endpoint to its end; (exit code, standard error).
    pub(crate) fn fail(&self, end: End, arguments: &[&str]) -> (Option<i32>, String) {
        let output = self.command(end, arguments).output().expect("endpoint");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for name in &self.names {
            // It may not exist if the test failed early.
            let _ = Command::new("ip").args(["netns", "del", name]).stderr(Stdio::null()).status();
        }
    }
}

/// An endpoint at work; killed if the test fails before it ends.
pub(crate) struct Running {
    child: Child,
    out: Option<BufReader<ChildStdout>>,
}

impl Running {
    /// Asks it to end.
    pub(crate) fn terminate(&self) {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM).expect("it runs");
    }

    /// Waits for its end and returns its report.
    pub(crate) fn report(mut self) -> Value {
        let mut text = String::new();
        let mut out = self.out.take().expect("not read yet");
        out.read_to_string(&mut text).expect("text");
        let status = self.child.wait().expect("status");
        assert!(status.success(), "{status}");
        serde_json::from_str(&text).expect("one JSON object")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
