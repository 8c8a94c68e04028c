//! Compiles the BPF sources into typed skeletons.

use libbpf_cargo::SkeletonBuilder;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCES: [&str; 2] = ["xdp_ingress", "xdp_bench"];

fn main() {
    if let Err(reason) = build() {
        eprintln!("error: {reason}");
        std::process::exit(1);
    }
}

fn build() -> Result<(), String> {
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".into());
    println!("cargo:rerun-if-env-changed=CLANG");
    if Command::new(&clang).arg("--version").output().is_err() {
        return Err(format!(
            "`{clang}` doesn't run, but the XDP program needs it: install clang, or set CLANG"
        ));
    }
    let out = PathBuf::from(std::env::var("OUT_DIR").map_err(|e| format!("OUT_DIR: {e}"))?);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf");
    for name in SOURCES {
        let source = folder.join(format!("{name}.bpf.c"));
        println!("cargo:rerun-if-changed={}", source.display());
        SkeletonBuilder::new()
            .source(&source)
            .clang(&clang)
            .clang_args(includes())
            .build_and_generate(out.join(format!("{name}.skel.rs")))
            .map_err(|e| format!("{name}.bpf.c: {e:#}"))?;
    }
    Ok(())
}

/// Where `asm/types.h` of the target is: clang for BPF doesn't look into the multiarch folder.
fn includes() -> Vec<String> {
    let mut args: Vec<String> = ["-Wall", "-Werror"].map(String::from).to_vec();
    if let Some(triplet) = multiarch() {
        args.push(format!("-I/usr/include/{triplet}"));
    }
    args
}

fn multiarch() -> Option<String> {
    let asked =
        [("gcc", &["-print-multiarch"][..]), ("dpkg-architecture", &["-qDEB_HOST_MULTIARCH"])];
    asked.iter().find_map(|(program, args)| {
        let said = Command::new(program).args(*args).output().ok()?;
        let triplet = String::from_utf8(said.stdout).ok()?.trim().to_owned();
        (said.status.success() && !triplet.is_empty()).then_some(triplet)
    })
}
