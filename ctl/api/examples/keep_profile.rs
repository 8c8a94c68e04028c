//! Keeps a profile as a switch does: `keep_profile FOLDER FILE`. For the test that kills it at
//! every system call.

use holdfast_api::last_good::{sha256, LastGood};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, folder, file] = arguments.as_slice() else {
        eprintln!("usage: keep_profile FOLDER FILE");
        return ExitCode::from(2);
    };
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("{file}: {error}");
            return ExitCode::FAILURE;
        }
    };
    match (LastGood { boot_file: sha256(&text), text }).write(Path::new(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
