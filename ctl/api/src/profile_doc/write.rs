//! A profile document as text: what import makes is read again by [`ProfileDoc::load`].

use super::{DscpRange, ProfileDoc, Slot};
use serde::{Serialize, Serializer};

/// Sections and keys that say nothing are left out of a written document.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Serialize for Slot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(self.number())
    }
}

impl Serialize for DscpRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl ProfileDoc {
    /// The document as TOML; keys that are absent stay absent.
    ///
    /// # Errors
    /// What the TOML writer refuses; nothing that can be loaded does so.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doc::Source;

    #[test]
    fn a_written_document_is_read_again_with_every_key_of_the_sample() {
        let sample = include_str!("../../../../deploy/samples/profile.toml");
        let doc = ProfileDoc::load(&Source::new("sample", sample)).unwrap();
        let text = doc.to_toml().unwrap();
        let again = ProfileDoc::load(&Source::new("written", text.clone()));
        assert_eq!(again.unwrap_or_else(|error| panic!("{error}\n{text}")), doc);
    }

    #[test]
    fn sections_without_keys_are_left_out() {
        let text = "name = \"p\"\n\n[[pool]]\nname = \"lossless\"\nsize = 4096\n";
        let doc = ProfileDoc::load(&Source::new("p", text)).unwrap();
        assert_eq!(doc.to_toml().unwrap(), text);
    }
}
