#!/usr/bin/env bash
# Installs what is missing to build and run the switch on Debian 12 (or a relative of it).
# With --tests also what the test suite needs. What is there already is left alone.
set -euo pipefail

packages=(gcc libc6-dev make pkg-config libelf-dev clang m4 iproute2 ethtool ca-certificates)
test_packages=(tshark shellcheck valgrind strace)

case "${1:-}" in
  "") ;;
  --tests) packages+=("${test_packages[@]}") ;;
  *)
    printf 'usage: %s [--tests]\n' "$0" >&2
    exit 2
    ;;
esac

say() { printf 'install: %s\n' "$*" >&2; }

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

if ! command -v cargo >/dev/null && [ ! -x "${HOME:?}/.cargo/bin/cargo" ]; then
  say "there is no Rust (cargo): install it by rustup first; Debian 12's own is too old"
  exit 1
fi
say "done"
