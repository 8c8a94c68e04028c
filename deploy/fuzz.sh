#!/usr/bin/env bash
# Builds the targets of tests/fuzz with coverage for libFuzzer, on stable Rust, and runs them.
set -euo pipefail

usage() {
  cat <<'END'
usage: deploy/fuzz.sh [INPUTS] [--only TARGET,...] [--seconds S] [--json FILE]
Runs INPUTS inputs (10 million) through each target of tests/fuzz, two targets at a time, and
prints a table: inputs, seconds, edges of code reached, corpus, crashes. Exit code 1 if an input
crashed, or if a target didn't get through. `holdfast-fuzz --help` says what else.
Example: deploy/fuzz.sh 1000000 --only wire,http
END
}

case ${1:-} in
  -h | --help)
    usage
    exit 0
    ;;
esac

cd "$(dirname "$0")/.."
PATH="${HOME:?}/.cargo/bin:$PATH"
command -v c++ >/dev/null || {
  echo "fuzz: libFuzzer needs a C++ compiler: deploy/install.sh --tests" >&2
  exit 2
}
target=${CARGO_TARGET_DIR:-$PWD/target}
export CARGO_TARGET_DIR=$target

cargo build --release --package holdfast-fuzz --bin holdfast-fuzz --quiet
runner=$target/release/holdfast-fuzz
host=$(rustc -vV | sed -n 's/^host: //p')
mapfile -t targets < <("$runner" --list)

# What cargo-fuzz passes, but for the address sanitizer: that needs a nightly compiler, and the
# code under test has no `unsafe`. `--target` keeps the flags away from build scripts.
flags=(-Cpasses=sancov-module)
for flag in level=4 inline-8bit-counters pc-table trace-compares; do
  flags+=("-Cllvm-args=-sanitizer-coverage-$flag")
done
flags+=(--cfg fuzzing)
RUSTFLAGS="${flags[*]}" CARGO_TARGET_DIR="$target/fuzz" cargo build --profile fuzz --quiet \
  --target "$host" --package holdfast-fuzz --features libfuzzer "${targets[@]/#/--bin=}"

exec "$runner" --binaries "$target/fuzz/$host/fuzz" --work "$target/fuzz-corpora" "$@"
