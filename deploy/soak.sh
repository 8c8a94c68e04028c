#!/usr/bin/env bash
# Builds, and gives a switch a bad day of so many minutes.
set -euo pipefail

usage() {
  cat <<'END'
usage: deploy/soak.sh MINUTES [--seed N] [--workers N] [--json FILE]
Ports that flap, vanish and are added, storms, applies, kills and stops at random, under load. Two
hosts are spared: exit code 1 if one of them loses a frame, if a cell or a chunk of memory isn't
back at the end, or if the switch has grown by more than 4 MiB.
Needs root. Installs missing Debian packages and builds into target/ first.
Example: deploy/soak.sh 30 --seed 7
END
}

case ${1:-} in
  -h | --help)
    usage
    exit 0
    ;;
  -*)
    echo "soak: unknown argument: $1" >&2
    usage >&2
    exit 2
    ;;
  "" | *[!0-9]*)
    echo "soak: say for how many minutes" >&2
    usage >&2
    exit 2
    ;;
esac
minutes=$1
shift

caller=$PWD
cd "$(dirname "$0")/.."

if [ "$(id -u)" -ne 0 ]; then
  echo "soak: it makes network namespaces and AF_XDP sockets: run this as root" >&2
  exit 2
fi
./deploy/install.sh
PATH="${HOME:?}/.cargo/bin:$PATH"
cargo build --release --quiet --bins --package holdfast-dataplane --package holdfast-ctl \
  --package holdfast-endpoint --package holdfast-e2e
binaries=$(cd "${CARGO_TARGET_DIR:-target}/release" && pwd)
cd "$caller"
exec "$binaries/holdfast-soak" --minutes "$minutes" "$@"
