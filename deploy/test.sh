#!/usr/bin/env bash
# shellcheck disable=SC2317 # the steps' functions are called by step
#
# The whole test suite, from formatting to real frames between network namespaces.
# Every step runs, also after a failed one; the exit code is 1 if any step failed.
set -euo pipefail

usage() {
  cat <<'END'
usage: deploy/test.sh [--long [PART...]]
The whole test suite: format, lints, units, real frames between network namespaces.
Every step runs, also after a failed one; exit code 1 if any step failed. It takes about 25 minutes
on two cores. Needs root. Installs missing Debian packages and builds into target/ first.
  --long    instead the long runs: rounds, soak, fuzz; hours, all together. Their outcomes are
            written to tests/long. PART names one of them: deploy/long.sh says more
To run a part: cargo test --package holdfast-core, or another package.
END
}

case ${1:-} in
  "") ;;
  --long) ;;
  -h | --help)
    usage
    exit 0
    ;;
  *)
    echo "test: unknown argument: $1" >&2
    usage >&2
    exit 2
    ;;
esac

cd "$(dirname "$0")/.."

if [ "$(id -u)" -ne 0 ]; then
  echo "test: the tests on real frames make network namespaces: run this as root" >&2
  exit 2
fi
./deploy/install.sh --tests
if [ "${1:-}" = --long ]; then
  shift
  exec ./deploy/long.sh "$@"
fi
PATH="${HOME:?}/.cargo/bin:$PATH"

target=${CARGO_TARGET_DIR:-$PWD/target}
export CARGO_TARGET_DIR=$target
# The end-to-end tests run what is shipped: release builds.
export HOLDFAST_BIN_DIR=$target/release
names=()
results=()
failed=0

# step NAME COMMAND...: runs it, notes how it went and how long it took.
step() {
  local name=$1 begin=$SECONDS result=ok
  shift
  printf '\n=== %s\n' "$name"
  "$@" || {
    result=FAILED
    failed=1
  }
  names+=("$name")
  results+=("$(printf '%-6s %5d s' "$result" $((SECONDS - begin)))")
}

has_nextest() { cargo nextest --version >/dev/null 2>&1; }

# Tests of namespaces share two cores and the kernel's link lock: few at a time.
workspace_tests() {
  if has_nextest; then
    cargo nextest run --workspace --exclude holdfast-e2e --test-threads 2 --no-fail-fast
  else
    cargo test --workspace --exclude holdfast-e2e --all-targets --no-fail-fast -- --test-threads 2
  fi
}

# One switch at a time: rates and pauses mean nothing if two share the cores.
end_to_end_tests() {
  if has_nextest; then
    cargo nextest run --package holdfast-e2e --test-threads 1 --no-fail-fast
  else
    cargo test --package holdfast-e2e --all-targets --no-fail-fast -- --test-threads 1
  fi
}

# Every model, and every fault that is seeded into it at run time; each prints its executions.
loom_models() {
  RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR="$target/loom" \
    cargo test --package holdfast-core --release --lib --test 'loom_*' -- --nocapture &&
    RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR="$target/loom" \
      cargo test --package holdfast-shm --release --test loom_block -- --nocapture
}

# Instructions, not seconds: they don't depend on what else the machine does.
instructions_a_frame() {
  cargo build --release --package holdfast-core --example frames --quiet &&
    cargo test --release --package holdfast-core --test instructions -- --nocapture &&
    cargo build --release --package holdfast-shm --example publish --quiet &&
    cargo test --release --package holdfast-shm --test instructions -- --nocapture
}

# The whole switch against the bare forwarder in one run; the gate is wide, for the machine is shared.
bench_gate() {
  cargo build --release --package holdfast-xsk --examples --quiet &&
    "$target/release/holdfast-bench" --rounds 2 --seconds 2 --at-least 0.5
}

step "format" cargo fmt --all --check
step "shell scripts" shellcheck deploy/*.sh .ci/run
step "lints" cargo clippy --workspace --all-targets --quiet -- --deny warnings
step "release binaries" cargo build --release --workspace --bins --quiet
step "unit to netdev tests" workspace_tests
step "documentation examples" cargo test --workspace --doc --quiet
step "interleavings" loom_models
step "instructions a frame" instructions_a_frame
step "end-to-end tests" end_to_end_tests
step "rate of the bare forwarder" bench_gate

printf '\n=== summary\n'
for i in "${!names[@]}"; do
  printf '%s  %s\n' "${results[$i]}" "${names[$i]}"
done
exit "$failed"
