//! What `links.json` holds: a JSON document with a checksum and the machine's boot id.

use holdfast_api::last_good::sha256;
use holdfast_xsk::Original;
use serde::{Deserialize, Serialize};

const ABOUT: &str = "Link settings as they were before the switch changed them. The switch puts \
                     them back when it ends, or at its next start, and removes this file.";

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    about: String,
    boot_id: String,
    sha256: String,
    /// In the order in which they were changed.
    changed: Vec<Original>,
}

/// The file's text for settings that were changed in the boot `boot_id`.
///
/// # Errors
/// The JSON writer's, which plain data doesn't cause.
pub(crate) fn write(all: &[Original], boot_id: &str) -> Result<String, serde_json::Error> {
    let document = Document {
        about: ABOUT.to_owned(),
        boot_id: boot_id.to_owned(),
        sha256: checksum(boot_id, all),
        changed: all.to_vec(),
    };
    serde_json::to_string_pretty(&document).map(|text| format!("{text}\n"))
}

/// What was left changed in the boot `boot_id`; nothing if the file is of another one.
///
/// # Errors
/// Why it isn't what a switch wrote.
pub(crate) fn read(text: &[u8], boot_id: &str) -> Result<Vec<Original>, String> {
    let document: Document = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    if document.sha256 != checksum(&document.boot_id, &document.changed) {
        return Err("the checksum doesn't hold: the file was changed".to_owned());
    }
    if document.boot_id != boot_id {
        log::debug!("link settings were kept in another boot of the machine");
        return Ok(Vec::new());
    }
    Ok(document.changed)
}

fn checksum(boot_id: &str, changed: &[Original]) -> String {
    // Plain data is always written.
    let changed = serde_json::to_string(changed).unwrap_or_default();
    sha256(&format!("{boot_id}\n{changed}"))
}
