//! A switch of the test's own: a socket that answers what the daemon asks.

use holdfast_api::last_good::sha256;
use holdfast_api::line::LineBuffer;
use holdfast_api::message::{
    Apply, Call, Done, ErrorBody, ErrorCode, Outcome, PgFilter, Request, Response,
};
use serde_json::{json, Value};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

/// What outlives a restart.
pub struct State {
    /// Hash of the profile in force.
    pub running: String,
    /// Which change made it.
    pub generation: u64,
    /// What `ping` says.
    pub version: String,
    /// Every profile is refused.
    pub refuses: bool,
    /// `show_ports` is never answered.
    pub silent: bool,
    /// The names of all calls but `ping` and `show_profile`, in order.
    pub calls: Vec<&'static str>,
    /// What was applied, dry runs left out.
    pub applied: Vec<String>,
    /// A call that waits for another one.
    waiting: Option<u64>,
}

impl State {
    pub fn new() -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self {
            running: "none".to_owned(),
            generation: 1,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            refuses: false,
            silent: false,
            calls: Vec::new(),
            applied: Vec::new(),
            waiting: None,
        }))
    }
}

/// A running switch; it vanishes when it is dropped.
pub struct Switch {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Switch {
    pub fn start(path: &Path, state: &Arc<Mutex<State>>) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        listener.set_nonblocking(true).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (state, stopped) = (Arc::clone(state), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let mut clients = Vec::new();
            while !stopped.load(Ordering::Acquire) {
                match listener.accept() {
                    Ok((stream, _)) => {
                        let (state, stopped) = (Arc::clone(&state), Arc::clone(&stopped));
                        clients.push(std::thread::spawn(move || serve(stream, &state, &stopped)));
                    }
                    Err(_) => std::thread::sleep(Duration::from_millis(5)),
                }
            }
            for client in clients {
                client.join().unwrap();
            }
        });
        Self { path: path.to_path_buf(), stop, thread: Some(thread) }
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !std::thread::panicking() {
                ended.unwrap();
            }
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

fn serve(mut stream: UnixStream, state: &Mutex<State>, stop: &AtomicBool) {
    stream.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    let (mut buffer, mut chunk) = (LineBuffer::new(), [0; 4096]);
    while !stop.load(Ordering::Acquire) {
        match stream.read(&mut chunk) {
            Ok(0) => return,
            Ok(count) => buffer.push(&chunk[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
            Err(_) => return,
        }
        while let Some(line) = buffer.next_line().unwrap() {
            let request = Request::parse(&line).unwrap();
            for answer in answers(&request, state.lock().unwrap()) {
                // It may have gone meanwhile.
                let _ = stream.write_all(answer.to_line().as_bytes());
            }
        }
    }
}

fn answers(request: &Request, mut state: MutexGuard<'_, State>) -> Vec<Response> {
    let id = request.id;
    let ok = |id, reply: Value| Response::ok(id, &reply);
    if !matches!(request.call, Call::Ping(_) | Call::ShowProfile(_) | Call::Segment(_)) {
        state.calls.push(request.call.name());
    }
    match &request.call {
        Call::Ping(_) => vec![ok(
            id,
            json!({ "name": "lab", "version": state.version, "pid": 7, "uptime_ns": 1,
                    "generation": state.generation, "now_ns": 2 }),
        )],
        Call::ShowProfile(_) => vec![ok(
            id,
            json!({ "name": "p", "generation": state.generation, "sha256": state.running }),
        )],
        Call::Apply(apply) => vec![Response { id: Some(id), outcome: state.apply(apply) }],
        // The first of two is answered after the second.
        Call::ShowPg(PgFilter { pg: Some(1), .. }) => {
            state.waiting = Some(id);
            Vec::new()
        }
        Call::ShowPg(PgFilter { pg: Some(2), .. }) => {
            let first = state.waiting.take().map(|first| ok(first, json!({ "pg": 1 })));
            [ok(id, json!({ "pg": 2 }))].into_iter().chain(first).collect()
        }
        Call::ShowPorts(_) if state.silent => Vec::new(),
        Call::PortHold(hold) if hold.port == "no-such" => {
            let body = ErrorBody::new(ErrorCode::UnknownPort, "there is no such port");
            vec![Response::error(Some(id), body)]
        }
        _ => vec![Response::ok(id, &Done {})],
    }
}

impl State {
    fn apply(&mut self, apply: &Apply) -> Outcome {
        if self.refuses {
            let body = ErrorBody::new(ErrorCode::Refused, "XOFF is too high");
            return Outcome::Error(body.at("pg.3.xoff").fix("lower it"));
        }
        let sha256 = sha256(&apply.profile);
        if !apply.dry_run {
            self.applied.push(apply.profile.clone());
            self.running = sha256.clone();
            self.generation += 1;
        }
        Outcome::Ok(json!({
            "applied": !apply.dry_run, "generation": self.generation, "name": "p",
            "sha256": sha256, "changed": [], "notes": [], "not_kept": null,
        }))
    }
}
