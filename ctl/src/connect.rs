//! From the command line to a connection.

use crate::cli::Target;
use crate::{print, CommandError};
use holdfast_api::client::{Client, ClientError};
use holdfast_api::message::Call;
use holdfast_api::place::control_socket;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Connects to the switch that `target` means.
pub(crate) fn connect(target: &Target) -> Result<Client, CommandError> {
    let path = control_socket(target.socket.as_deref(), target.name.as_deref())?;
    Ok(Client::connect(&path)?)
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
