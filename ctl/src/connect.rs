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
    sockets.sort();
    let place = folder.display();
    match (sockets.pop(), sockets.as_slice()) {
        (Some(path), []) => Ok(path),
        (None, _) => Err(CommandError::NoSwitch(format!(
            "no switch runs: there is no socket in {place}; start one by `holdfast run`, or name \
             its socket by --socket or HOLDFAST_SOCKET"
        ))),
        (Some(last), others) => {
            let all = others.iter().chain([&last]).filter_map(|path| path.file_stem());
            let names: Vec<_> = all.map(|name| name.to_string_lossy().into_owned()).collect();
            Err(CommandError::SeveralSwitches(format!(
                "several switches have a socket in {place}: {}; name one by --name",
                names.join(", ")
            )))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_socket_is_meant_none_is_unreachable_and_several_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let none = only_socket(folder.path()).unwrap_err();
        assert_eq!(none.exit_code(), 3);
        assert!(none.to_string().contains("`holdfast run`"), "{none}");
        let touch = |name| std::fs::write(folder.path().join(name), "").unwrap();
        touch("lab.sock");
        touch("lab.toml");
        assert_eq!(only_socket(folder.path()).unwrap(), folder.path().join("lab.sock"));
        touch("core.sock");
        let several = only_socket(folder.path()).unwrap_err();
        assert_eq!(several.exit_code(), 2);
        assert!(several.to_string().contains(": core, lab; "), "{several}");
    }
}
