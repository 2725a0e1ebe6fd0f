#!/usr/bin/env bash
# Follow README on fresh machines: in each suite of Debian as root, with `make test`, and as a user without rights, with
# `make quick`. As root nothing may be skipped. All are tried, whatever fails; the end says how long each took.
#
#   tools/fresh_all.sh bookworm trixie
#
# The output of each is kept in build/fresh.
set -u
cd "$(dirname "$0")/.." || exit 1

fail() {
  echo "fresh: $*" >&2
  exit 2
}

[ $# -gt 0 ] || fail "which suites of Debian? tools/fresh_all.sh bookworm trixie"
[ "$(id -u)" = 0 ] || fail "it needs root, to make machines in folders"
mkdir -p build/fresh || fail "build/fresh cannot be made"
exec 8<build/fresh
flock --nonblock 8 || fail "another run goes on here"

failed=0
said=()
try() {
  local suite=$1 who=$2 log=build/fresh/$1-$2.log begun=$SECONDS end=passed
  shift 2
  echo "fresh: $suite as $who; the output is in $log"
  "$@" >"$log" 2>&1 </dev/null &
  child=$!
  # A signal ends the machine and this script.
  trap 'kill "$child"; wait "$child"; exit 130' INT TERM HUP
  wait "$child" || { end=FAILED; failed=1; }
  said+=("$suite as $who $end after $(((SECONDS - begun) / 60)) minutes")
  grep '^first steps:' "$log"
  [ "$end" = passed ] || tail -n 40 "$log"
}
for suite in "$@"; do
  try "$suite" root env CI=true tools/fresh.sh "$suite" tools/first_steps.sh test
  try "$suite" user env --unset=CI tools/fresh.sh --user "$suite" tools/first_steps.sh quick
done
printf 'fresh: %s\n' "${said[@]}"
exit "$failed"
