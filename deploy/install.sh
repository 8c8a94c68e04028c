#!/usr/bin/env bash
# Installs what is missing to build and run the switch on Debian 12 (or a relative of it). What is
# there already is left alone.
set -euo pipefail

packages=(gcc libc6-dev make pkg-config libelf-dev clang m4 iproute2 ethtool ca-certificates)
test_packages=(g++ tshark shellcheck valgrind strace prometheus bpftool iperf3)
peer_packages=(dpdk-dev)

usage() {
  cat <<'END'
usage: deploy/install.sh [--tests] [--peers]
Installs the Debian packages that are missing to build and run the switch. Rust (cargo) isn't
installed: it must be there already.
  --tests  also what the test suite needs; of these the package prometheus starts a service of
           that name where systemd runs: systemctl disable --now prometheus ends it
  --peers  also DPDK testpmd, for bench.sh --peers
  --help   this text
END
}

for argument in "$@"; do
  case $argument in
    --tests) packages+=("${test_packages[@]}") ;;
    --peers) packages+=("${peer_packages[@]}") ;;
    -h | --help)
      usage
      exit 0
      ;;
    *)
      echo "install: unknown argument: $argument" >&2
      usage >&2
      exit 2
      ;;
  esac
done

say() { printf 'install: %s\n' "$*" >&2; }

# Before anything is installed: without Rust of this age all of it would be for nothing.
check_rust() {
  local needed found
  needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$(dirname "$0")/../Cargo.toml")
  PATH="${HOME:?}/.cargo/bin:$PATH"
  if ! command -v cargo >/dev/null || ! command -v rustc >/dev/null; then
    say "there is no Rust (cargo, rustc): install $needed or later by rustup (https://rustup.rs);" \
      "Debian 12's own is too old"
    exit 1
  fi
  found=$(rustc --version | cut -d ' ' -f 2)
  if [ "$(printf '%s\n%s\n' "$needed" "$found" | sort -V | head -n 1)" != "$needed" ]; then
    say "Rust $found is too old, $needed is needed: rustup update, or install rustup" \
      "(https://rustup.rs) where this is Debian's own"
    exit 1
  fi
}

is_installed() {
  [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    say "needs root for: $*"
    exit 1
  fi
}

apt_install() {
  say "apt-get install $*"
  as_root apt-get update --quiet=2
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install --yes --quiet=2 --no-install-recommends "$@" >/dev/null
}

check_rust
missing=()
for package in "${packages[@]}"; do
  is_installed "$package" || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  command -v apt-get >/dev/null || {
    say "there is no apt-get here; install these yourself: ${missing[*]}"
    exit 1
  }
  apt_install "${missing[@]}"
else
  say "all packages are there: ${packages[*]}"
fi
say "done"
