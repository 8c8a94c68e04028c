//! What the switches say of themselves, and those that don't answer.

use crate::cli::Target;
use crate::CommandError;
use holdfast_api::client::{Client, ClientError};
use holdfast_api::message::{Call, ErrorCode, PortFilter, PortsReply, WaitsReply};
use holdfast_api::place::control_socket;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// A switch that answered.
pub(super) struct Asked {
    client: Client,
    /// What it said first.
    pub(super) reply: WaitsReply,
}

/// A switch that could not be asked.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Unasked {
    /// Its socket.
    pub(super) socket: PathBuf,
    /// Why.
    pub(super) why: String,
}

/// The sockets that are meant.
pub(super) fn sockets(target: &Target, named: &[String]) -> Result<Vec<PathBuf>, CommandError> {
    if named.is_empty() {
        return Ok(vec![control_socket(target.socket.as_deref(), target.name.as_deref())?]);
    }
    let mut sockets = Vec::new();
    for name in named {
        let path = match name.contains('/') || name.ends_with(".sock") {
            true => PathBuf::from(name),
            false => control_socket(None, Some(name.as_str()))?,
        };
        if !sockets.contains(&path) {
            sockets.push(path);
        }
    }
    Ok(sockets)
}

/// Asks all switches; one that was named twice is asked once.
pub(super) fn ask_all(sockets: &[PathBuf]) -> (Vec<Asked>, Vec<Unasked>) {
    let (mut asked, mut unasked): (Vec<Asked>, Vec<Unasked>) = (Vec::new(), Vec::new());
    // All connections first: so the answers are of nearly the same time.
    let clients: Vec<_> = sockets.iter().map(|path| (path, Client::connect(path))).collect();
    for (path, client) in clients {
        match client.and_then(|mut client| Ok((waits(&mut client)?, client))) {
            Ok((reply, client)) => {
                if !asked.iter().any(|other| is_same(&other.reply, &reply)) {
                    asked.push(Asked { client, reply });
                }
            }
            Err(error) => unasked.push(Unasked::new(path, &error)),
        }
    }
    (asked, unasked)
}

impl Unasked {
    fn new(path: &Path, error: &ClientError) -> Self {
        Self { socket: path.to_path_buf(), why: error.to_string() }
    }
}

impl Asked {
    /// What it says now; `None`, if it doesn't answer any more.
    pub(super) fn again(&mut self) -> Option<WaitsReply> {
        waits(&mut self.client).ok()
    }
}

fn is_same(one: &WaitsReply, other: &WaitsReply) -> bool {
    (&one.switch, one.pid, &one.ports) == (&other.switch, other.pid, &other.ports)
}

fn waits(client: &mut Client) -> Result<WaitsReply, ClientError> {
    match client.call(Call::ShowWaits(PortFilter { port: None })) {
        Err(ClientError::Refused(body)) if body.code == ErrorCode::TooLong => by_port(client),
        answer => answer,
    }
}

/// Port by port, where the whole is longer than a line may be.
fn by_port(client: &mut Client) -> Result<WaitsReply, ClientError> {
    let ports: PortsReply = client.call(Call::ShowPorts(PortFilter { port: None }))?;
    let mut whole: Option<WaitsReply> = None;
    for port in ports.ports {
        let part: WaitsReply =
            client.call(Call::ShowWaits(PortFilter { port: Some(port.port) }))?;
        let Some(whole) = &mut whole else {
            whole = Some(part);
            continue;
        };
        whole.pgs.extend(part.pgs);
        for queue in part.queues {
            let is_it = |other: &_| same_queue(other, &queue);
            if !whole.queues.iter().any(is_it) {
                whole.queues.push(queue);
            }
        }
    }
    whole.map_or_else(|| client.call(Call::ShowWaits(PortFilter { port: None })), Ok)
}

fn same_queue(
    one: &holdfast_api::message::WaitsQueue,
    other: &holdfast_api::message::WaitsQueue,
) -> bool {
    (&one.port, one.queue) == (&other.port, other.queue)
}
