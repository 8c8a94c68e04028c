//! The scripts in `deploy` look at their arguments, and at Rust, before they install or build.

use holdfast_e2e::TestResult;
use std::fs;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// Programs that change nothing, as they are on this machine.
const HARMLESS: [&str; 9] =
    ["bash", "cat", "cut", "dirname", "head", "id", "printf", "sed", "sort"];
/// Programs that install or build; here they only leave their name.
const ACTING: [&str; 3] = ["apt-get", "dpkg-query", "cargo"];

/// A machine on which nothing can be installed or built without a trace.
struct Bench {
    folder: TempDir,
}

impl Bench {
    /// `rust` is what `rustc` says of itself.
    fn new(rust: &str) -> std::io::Result<Self> {
        let bench = Self { folder: tempfile::tempdir()? };
        let paths = std::env::var_os("PATH").unwrap_or_default();
        for name in HARMLESS {
            let found = std::env::split_paths(&paths).map(|folder| folder.join(name));
            if let Some(path) = found.into_iter().find(|path| path.is_file()) {
                symlink(path, bench.folder.path().join(name))?;
            }
        }
        let trace = bench.trace();
        for name in ACTING {
            bench.program(name, &format!("echo {name} $* >> {}; exit 1", trace.display()))?;
        }
        bench.program("rustc", &format!("echo {rust}"))?;
        Ok(bench)
    }

    fn program(&self, name: &str, body: &str) -> std::io::Result<()> {
        let path = self.folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{body}\n"))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
    }

    fn trace(&self) -> PathBuf {
        self.folder.path().join("trace")
    }

    fn acted(&self) -> String {
        fs::read_to_string(self.trace()).unwrap_or_default()
    }

    fn run(&self, script: &str, arguments: &[&str]) -> std::io::Result<Output> {
        let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
        let mut command = Command::new("bash");
        command.arg(deploy.join(script)).args(arguments);
        command.env("PATH", self.folder.path()).env("HOME", self.folder.path()).output()
    }
}

#[test]
fn arguments_are_looked_at_first() -> TestResult {
    let bench = Bench::new("rustc 1.85.0")?;
    for script in ["demo.sh", "bench.sh", "soak.sh", "test.sh", "install.sh"] {
        let help = bench.run(script, &["--help"])?;
        assert_eq!(help.status.code(), Some(0), "{script}: {help:?}");
        let usage = format!("usage: deploy/{script}");
        assert!(String::from_utf8(help.stdout)?.starts_with(&usage), "{script}");
        let wrong = bench.run(script, &["--no-such"])?;
        assert_eq!(wrong.status.code(), Some(2), "{script}: {wrong:?}");
        let said = String::from_utf8(wrong.stderr)?;
        assert!(said.contains("unknown argument: --no-such"), "{script}: {said}");
        assert!(said.contains(&usage), "{script}: {said}");
    }
    for [script, option] in [["demo.sh", "--json"], ["bench.sh", "--rounds"]] {
        assert_eq!(bench.run(script, &[option])?.status.code(), Some(2), "{script} {option}");
    }
    assert_eq!(bench.acted(), "");
    Ok(())
}

#[test]
fn an_old_rust_is_refused_before_packages_are_installed() -> TestResult {
    let old = Bench::new("rustc 1.63.0")?;
    let output = old.run("install.sh", &[])?;
    let said = String::from_utf8(output.stderr)?;
    assert_eq!((output.status.code(), old.acted().as_str()), (Some(1), ""), "{said}");
    assert!(said.contains("Rust 1.63.0 is too old, 1.85 is needed"), "{said}");
    // One that is new enough gets as far as the packages, which can't be installed here.
    for version in ["1.85.0", "1.100.0"] {
        let new = Bench::new(&format!("rustc {version}"))?;
        new.run("install.sh", &[])?;
        assert!(new.acted().contains("dpkg-query"), "{}", new.acted());
    }
    Ok(())
}
