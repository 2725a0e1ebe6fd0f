#!/usr/bin/env bash
# Follow README on fresh machines: in each suite of Debian as root, with `make test`, and as a user without rights, with
# `make quick`. As root nothing may be skipped. All are tried, whatever fails; the end says how long each took.
#
#   tools/fresh_all.sh bookworm trixie
#
# What each has printed is kept in build/fresh.
set -u
cd "$(dirname "$0")/.." || exit 1
mkdir -p build/fresh
failed=0
said=()
try() {
  local suite=$1 who=$2 log=build/fresh/$1-$2.log begun=$SECONDS end
  shift 2
  echo "fresh: $suite as $who; what it prints is in $log"
  if "$@" >"$log" 2>&1 </dev/null; then end=passed; else end=FAILED; failed=1; fi
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
