#!/usr/bin/env bash
# Installs what is missing, builds, and measures the whole switch against a bare AF_XDP forwarder
# on the same netdevs, in turn, in one run.
set -euo pipefail

usage() {
  cat <<'END'
usage: deploy/bench.sh [--peers] [--json FILE] [--rounds N] [--seconds N] [--at-least RATIO]
Rates, CPU time a frame, and ratios to a bare AF_XDP forwarder of the same run.
  --peers           also DPDK testpmd (installs the Debian package dpdk-dev)
  --json FILE       write all samples, medians and ratios as JSON
  --rounds N        1 to 50, 3 by default: each contender runs once at each size in a round
  --seconds N       1 to 60, 3 by default: measured of each run
  --at-least RATIO  exit code 1 if the switch is below this share of the bare forwarder
  --help            this text
Needs root. Installs missing Debian packages and builds into target/ first.
END
}

needs=()
arguments=("$@")
while [ $# -gt 0 ]; do
  case $1 in
    --peers)
      needs=(--peers)
      shift
      ;;
    --json | --rounds | --seconds | --at-least)
      [ $# -ge 2 ] || { echo "bench: $1 needs a value" >&2; exit 2; }
      shift 2
      ;;
    --json=* | --rounds=* | --seconds=* | --at-least=*) shift ;;
    -h | --help)
      usage
      exit 0
      ;;
    *)
      echo "bench: unknown argument: $1" >&2
      usage >&2
      exit 2
      ;;
  esac
done

caller=$PWD
cd "$(dirname "$0")/.."

if [ "$(id -u)" -ne 0 ]; then
  echo "bench: it makes network namespaces and AF_XDP sockets: run this as root" >&2
  exit 2
fi
./deploy/install.sh ${needs[@]+"${needs[@]}"}
PATH="${HOME:?}/.cargo/bin:$PATH"
echo "bench: building release binaries; the first time takes minutes" >&2
cargo build --release --bins --package holdfast-dataplane --package holdfast-e2e
cargo build --release --examples --package holdfast-xsk
binaries=$(cd "${CARGO_TARGET_DIR:-target}/release" && pwd)
cd "$caller"
exec "$binaries/holdfast-bench" ${arguments[@]+"${arguments[@]}"}
