#!/usr/bin/env bash
# Make sure that the benchmark finds etcd: on the PATH, or else in bench/peers, where Debian's
# package is unpacked. It is not installed, because that would start a service. Without it the
# benchmark says so and continues.
set -u
cd "$(dirname "$0")/.." || exit 1

command -v etcd >/dev/null && exit 0
[ -x bench/peers/usr/bin/etcd ] && exit 0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# apt-get drops its rights when it downloads.
chmod 755 "$work"

download() { (cd "$work" && apt-get download -q etcd-server >log 2>&1 </dev/null); }
update() {
  if [ "$(id -u)" = 0 ]; then apt-get update -q; else sudo -n apt-get update -q; fi
} >/dev/null 2>&1 </dev/null

if ! command -v apt-get >/dev/null; then
  echo "etcd: there is no apt-get here, so etcd is not measured" >&2
elif { download || { update && download; }; } && dpkg-deb -x "$work"/etcd-server_*.deb bench/peers; then
  echo "etcd: Debian's package is unpacked in bench/peers"
else
  echo "etcd: it could not be downloaded, so it is not measured" >&2
  tail -n 3 "$work/log" >&2
fi
