//! A [`DownReason`] is on the wire by its name.

use holdfast_core::down::DownReason;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

pub(super) fn serialize<S: Serializer>(
    reason: &DownReason,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(reason.name())
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<DownReason, D::Error> {
    let name = String::deserialize(deserializer)?;
    let unknown = || Error::custom(format!("no such reason: {name}"));
    DownReason::of_name(&name).ok_or_else(unknown)
}
