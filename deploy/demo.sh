#!/usr/bin/env bash
# Installs what is missing, builds, and shows a lossless incast on real frames.
set -euo pipefail

usage() {
  cat <<'END'
usage: deploy/demo.sh [--once] [--json FILE]
Two hosts overload a third through the switch: lossless frames all arrive, lossy ones don't.
  --once       send for 10 seconds; without it until CTRL-C
  --json FILE  write the outcome as JSON
  --help       this text
Exit code 1 if the outcome isn't what it must be. Needs root. Installs missing Debian packages and
builds into target/ first. Network namespaces, processes and link settings go away with it.
END
}

arguments=("$@")
while [ $# -gt 0 ]; do
  case $1 in
    --once) shift ;;
    --json)
      [ $# -ge 2 ] || { echo "demo: --json needs a FILE" >&2; exit 2; }
      shift 2
      ;;
    --json=*) shift ;;
    -h | --help)
      usage
      exit 0
      ;;
    *)
      echo "demo: unknown argument: $1" >&2
      usage >&2
      exit 2
      ;;
  esac
done

caller=$PWD
cd "$(dirname "$0")/.."

if [ "$(id -u)" -ne 0 ]; then
  echo "demo: it makes network namespaces and AF_XDP sockets: run this as root" >&2
  exit 2
fi
./deploy/install.sh
PATH="${HOME:?}/.cargo/bin:$PATH"
echo "demo: building release binaries; the first time takes minutes" >&2
cargo build --release --bins --package holdfast-dataplane --package holdfast-ctl \
  --package holdfast-endpoint --package holdfast-e2e
binaries=$(cd "${CARGO_TARGET_DIR:-target}/release" && pwd)
cd "$caller"
exec "$binaries/holdfast-demo" ${arguments[@]+"${arguments[@]}"}
