//! From the command line to a connection.

use crate::cli::Target;
use crate::{print, CommandError};
use holdfast_api::client::{Client, ClientError};
use holdfast_api::message::Call;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Where sockets lie (SPEC 11).
const RUN_FOLDER: &str = "/run/holdfast";

/// Connects to the switch that `target` means.
pub(crate) fn connect(target: &Target) -> Result<Client, CommandError> {
    let path = match (&target.socket, &target.name) {
        (Some(path), _) => path.clone(),
        (None, Some(name)) => Path::new(RUN_FOLDER).join(format!("{name}.sock")),
        (None, None) => only_socket(Path::new(RUN_FOLDER))?,
    };
    Ok(Client::connect(&path)?)
}

fn only_socket(folder: &Path) -> Result<PathBuf, CommandError> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_socket = |path: &PathBuf| path.extension().is_some_and(|end| end == "sock");
    let mut sockets: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_socket).collect();
    match (sockets.pop(), sockets.len()) {
        (Some(path), 0) => Ok(path),
        (found, more) => {
            let count = more + usize::from(found.is_some());
            let place = folder.display();
            let fix = "name the switch by --name, --socket or HOLDFAST_SOCKET";
            Err(CommandError::NoSocket(format!("{count} sockets in {place}; {fix}")))
        }
    }
}

/// Makes one call and prints its answer: as JSON where asked, else as `text` makes it.
pub(crate) fn answer<T: DeserializeOwned>(
    target: &Target,
    call: Call,
    text: impl FnOnce(&T) -> String,
) -> Result<(), CommandError> {
    let mut client = connect(target)?;
    let name = call.name();
    let value = client.call_raw(call)?;
    if target.json {
        return Ok(print(&format!("{value}\n"))?);
    }
    let reply: T = decode(&client, name, value)?;
    Ok(print(&text(&reply))?)
}

/// Reads an `ok` object as the reply type of its call.
pub(crate) fn decode<T: DeserializeOwned>(
    client: &Client,
    call: &'static str,
    value: Value,
) -> Result<T, CommandError> {
    serde_json::from_value(value).map_err(|error| {
        let path = client.path().to_path_buf();
        ClientError::NotAnAnswer { path, call, why: error.to_string() }.into()
    })
}
