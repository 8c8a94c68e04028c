#!/usr/bin/env bash
# Installs what is missing, builds, and shows a lossless incast on real frames.
#   deploy/demo.sh                     until CTRL-C
#   deploy/demo.sh --once --json FILE  10 seconds, the outcome also as JSON; exit 1 if it isn't
#                                      what it must be
# Network namespaces, processes and link settings go away with it.
set -euo pipefail
caller=$PWD
cd "$(dirname "$0")/.."

if [ "$(id -u)" -ne 0 ]; then
  echo "demo: it makes network namespaces and AF_XDP sockets: run this as root" >&2
  exit 2
fi
./deploy/install.sh
PATH="$PATH:${HOME:?}/.cargo/bin"
echo "demo: building release binaries" >&2
cargo build --release --bins --package holdfast-dataplane --package holdfast-ctl \
  --package holdfast-endpoint --package holdfast-e2e
binaries=$(cd "${CARGO_TARGET_DIR:-target}/release" && pwd)
cd "$caller"
exec "$binaries/holdfast-demo" "$@"
