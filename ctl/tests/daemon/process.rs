//! The daemon as a process, and somebody who talks HTTP to it.

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Ample for whatever is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until `what` holds.
pub fn until<T>(what: &str, mut holds: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = holds() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdfastd"));
    command.env_remove("HOLDFAST_SOCKET").env_remove("HOLDFAST_LOG");
    command
}

pub struct Daemon {
    pub folder: TempDir,
    child: Child,
    pub port: u16,
}

/// An answer: its status, its head and its body.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

impl Daemon {
    /// Starts one; its socket is [`Self::socket`].
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), arguments)
    }

    pub fn start_in(folder: TempDir, arguments: &[&str]) -> Self {
        Self::start_on("127.0.0.1:0", folder, arguments)
    }

    pub fn start_on(listen: &str, folder: TempDir, arguments: &[&str]) -> Self {
        let port_file = folder.path().join("port");
        let log = File::create(folder.path().join("log")).unwrap();
        let child = command()
            .arg("--socket")
            .arg(folder.path().join("s.sock"))
            .args(["--listen", listen, "--port-file"])
            .arg(&port_file)
            .args(arguments)
            .stderr(log)
            .spawn()
            .unwrap();
        let read = || fs::read_to_string(&port_file).ok()?.strip_suffix('\n')?.parse().ok();
        let port = until("the port is known", read);
        Self { folder, child, port }
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("s.sock")
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    pub fn get(&self, target: &str) -> Reply {
        let mut stream = self.connect();
        ask(&mut stream, target);
        read_all(stream)
    }

    /// What somebody is told who asks for `/` at this host.
    pub fn status_at(&self, host: &str) -> u16 {
        let mut stream = self.connect();
        let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        read_all(stream).status
    }

    pub fn post(&self, target: &str, body: &str) -> Reply {
        let mut stream = self.connect();
        let length = body.len();
        let request = format!(
            "POST {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        read_all(stream)
    }

    /// The status's `ok`.
    pub fn status(&self) -> Value {
        self.get("/api/v1/status").json()["ok"].clone()
    }

    pub fn until_healthy(&self) {
        until("the switch answers", || (self.get("/healthz").status == 200).then_some(()));
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    /// Lets it have so many descriptors from now on.
    pub fn limit_descriptors(&self, most: u32) {
        let (pid, most) = (self.child.id().to_string(), format!("--nofile={most}:{most}"));
        let status = Command::new("prlimit").args(["--pid", &pid, &most]).status();
        assert!(status.expect("util-linux has prlimit").success());
    }

    pub fn wait(&mut self) -> ExitStatus {
        until("the daemon ends", || self.child.try_wait().unwrap())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.log());
        }
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks for `target` as the last thing on this connection.
pub fn ask(stream: &mut TcpStream, target: &str) {
    let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
}

/// Reads the answer, and that the connection ends.
pub fn read_all(mut stream: TcpStream) -> Reply {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.get(9..12).and_then(|code| code.parse().ok());
    let status = status.unwrap_or_else(|| panic!("no answer: {text:?}"));
    Reply { status, head: head.to_owned(), body: body.to_owned() }
}
