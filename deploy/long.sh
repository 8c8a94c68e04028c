#!/usr/bin/env bash
# The long runs, and their outcomes in tests/long. Called by deploy/test.sh --long.
set -euo pipefail

usage() {
  cat <<'END'
usage: deploy/test.sh --long [PART...]
The long runs; hours, all together. Each writes its outcome to tests/long/PART.txt.
  rounds    the end-to-end tests that have a longer form, in full length: 100 stops, 200 flaps,
            floods and storms of a minute. LONG_TESTS=NAME,... takes some of the files only
  soak      deploy/soak.sh, LONG_MINUTES (30) with one worker and as many with two
  fuzz      deploy/fuzz.sh, LONG_INPUTS (10000000) a target
Exit code 1 if one fails.
END
}

parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(rounds soak fuzz)
for part in "${parts[@]}"; do
  case $part in
    rounds | soak | fuzz) ;;
    *)
      echo "long: no such part: $part" >&2
      usage >&2
      exit 2
      ;;
  esac
done

cd "$(dirname "$0")/.."
PATH="${HOME:?}/.cargo/bin:$PATH"
target=${CARGO_TARGET_DIR:-$PWD/target}
export CARGO_TARGET_DIR=$target HOLDFAST_BIN_DIR=$target/release HOLDFAST_LONG=1
tests=${LONG_TESTS:-cross_priority,ecn_positions,pfcwd_all_classes,pfcwd_false_storms,pfcwd_flush,\
pfcwd_storm,plain_sockets,preflight,random_flaps,receive_overrun,spec14_faults,spec14_floods,tx_bursts}

# head PART: where and when.
head_of() {
  printf '%s, %s, Linux %s, %s cores, commit %s\n\n' "$1" "$(date --utc +%F)" "$(uname -r)" \
    "$(nproc)" "$(git rev-parse --short HEAD 2>/dev/null || echo unknown)"
}

run_rounds() {
  local files=()
  for name in ${tests//,/ }; do
    files+=(--test "$name")
  done
  cargo build --release --quiet --workspace --bins
  # What a test prints is its measurement.
  cargo test --package holdfast-e2e "${files[@]}" --no-fail-fast -- --include-ignored \
    --test-threads 1 --show-output
}

run_soak() {
  for workers in 1 2; do
    ./deploy/soak.sh "${LONG_MINUTES:-30}" --workers "$workers"
  done
}

run_fuzz() {
  ./deploy/fuzz.sh "${LONG_INPUTS:-10000000}"
}

run() {
  case $1 in
    rounds) run_rounds ;;
    soak) run_soak ;;
    *) run_fuzz ;;
  esac
}

mkdir -p tests/long
failed=0
for part in "${parts[@]}"; do
  outcome=tests/long/$part.txt
  begin=$SECONDS
  result=passed
  log=$(mktemp)
  run "$part" 2>&1 | tee "$log" || {
    result=FAILED
    failed=1
  }
  {
    head_of "$part"
    # Verdicts and measurements, not what the build, the switches and a backtrace said.
    grep --extended-regexp --invert-match \
      -e '^ +(Compiling|Running|Finished|Blocking|at |[0-9]+: |[a-z0-9_]+$)' \
      -e '^(running|failures:|successes:|stack |note: |install: |$)' \
      -e '\[20[0-9-]+T|^[A-Z][A-Za-z]+$' "$log"
    printf '\n%s after %d s\n' "$result" $((SECONDS - begin))
  } >"$outcome"
  rm --force "$log"
  echo "long: $part $result, written to $outcome"
done
exit "$failed"
