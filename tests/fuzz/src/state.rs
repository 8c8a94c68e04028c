//! The files that a switch leaves for its next start: the last good profile, link settings (SPEC
//! 9, 11).

// The switch is a program without a library; this part of it is pure.
#[allow(dead_code, unreachable_pub)]
#[path = "../../../dataplane/src/kept_links/document.rs"]
mod links;

use holdfast_api::last_good::{sha256, LastGood};
use holdfast_xsk::Original;

const BOOT: &str = "0b5e-boot";

/// Reads the bytes as either file, and as what either file is made of: that is written, read again,
/// and, with one byte changed, refused.
pub fn target(data: &[u8]) {
    let Some((flip, rest)) = data.split_first() else { return };
    if let Ok(text) = core::str::from_utf8(rest) {
        if let Some(good) = LastGood::from_file(text) {
            assert_eq!(good.to_file(), text, "read what wasn't written so");
        }
        let good = LastGood { text: text.to_owned(), boot_file: sha256("boot") };
        let file = good.to_file();
        assert_eq!(LastGood::from_file(&file), Some(good));
        let (damaged, changed) = damage(file.as_bytes(), *flip, rest.len());
        if let (true, Ok(damaged)) = (changed, core::str::from_utf8(&damaged)) {
            assert_eq!(LastGood::from_file(damaged), None, "damage isn't found out");
        }
    }
    if let Ok(all) = links::read(rest, BOOT) {
        check_links(&all, *flip);
    }
    if let Ok(all) = serde_json::from_slice::<Vec<Original>>(rest) {
        check_links(&all, *flip);
    }
}

fn check_links(all: &[Original], flip: u8) {
    let file = links::write(all, BOOT).unwrap();
    assert_eq!(links::read(file.as_bytes(), BOOT).unwrap(), all);
    assert_eq!(links::read(file.as_bytes(), "another boot").unwrap(), []);
    let (damaged, _) = damage(file.as_bytes(), flip, usize::from(flip) * 131);
    if let Ok(read) = links::read(&damaged, BOOT) {
        // Space between values, or the sentence that says what the file is.
        assert!(read == all || read.is_empty(), "{read:?} of {all:?}");
    }
}

/// One byte changed; whether it is another one.
fn damage(file: &[u8], flip: u8, at: usize) -> (Vec<u8>, bool) {
    let mut bytes = file.to_vec();
    let at = at % bytes.len();
    bytes[at] ^= flip;
    (bytes, flip != 0)
}
