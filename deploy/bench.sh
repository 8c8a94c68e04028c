#!/usr/bin/env bash
# Installs what is missing, builds, and measures the whole switch against a bare AF_XDP forwarder
# on the same netdevs, in turn, in one run.
#   deploy/bench.sh --json FILE          rates, CPU time a frame, ratios
#   deploy/bench.sh --peers --json FILE  also DPDK testpmd (installs the Debian package dpdk-dev)
# More options: --rounds N, --seconds N.
set -euo pipefail
caller=$PWD
cd "$(dirname "$0")/.."

if [ "$(id -u)" -ne 0 ]; then
  echo "bench: it makes network namespaces and AF_XDP sockets: run this as root" >&2
  exit 2
fi
./deploy/install.sh
for argument in "$@"; do
  if [ "$argument" = --peers ] && ! command -v dpdk-testpmd >/dev/null; then
    echo "bench: installing dpdk-dev" >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends dpdk-dev >&2
  fi
done
PATH="$PATH:${HOME:?}/.cargo/bin"
echo "bench: building release binaries" >&2
cargo build --release --bins --package holdfast-dataplane --package holdfast-e2e
cargo build --release --examples --package holdfast-xsk
binaries=$(cd "${CARGO_TARGET_DIR:-target}/release" && pwd)
cd "$caller"
exec "$binaries/holdfast-bench" "$@"
