#!/usr/bin/env bash
# Do what README says at first, in a clone on a machine that has nothing yet: `make serve`, a request, Ctrl-C; then
# `make test`, or another target. Say how long each took; fail where one fails.
#
#   tools/first_steps.sh [TARGET]
set -u
cd "$(dirname "$0")/.." || exit 1
target=${1:-test}
log=$(mktemp)

fail() {
  echo "first steps: make serve $*:" >&2
  tail -n 20 "$log" >&2
  kill -KILL -- -"$server" 2>/dev/null
  exit 1
}

# The address is that of README. A server that does not serve in ten minutes never will.
begun=$SECONDS
env --default-signal=INT setsid make serve >"$log" 2>&1 </dev/null &
server=$!
until grep -q 'ready: serving on 127.0.0.1:2181' "$log"; do
  kill -0 "$server" 2>/dev/null || fail "has ended"
  [ $((SECONDS - begun)) -le 600 ] || fail "does not serve"
  sleep 1
done
.venv/bin/paddock create /first-steps data >/dev/null || fail "serves, and a request fails"
echo "first steps: make serve served after $((SECONDS - begun)) s"
# As Ctrl-C does: to make and to the server.
kill -INT -- -"$server"
begun=$SECONDS
while kill -0 "$server" 2>/dev/null; do
  [ $((SECONDS - begun)) -le 60 ] || fail "does not stop"
  sleep 1
done
grep -q 'stopped in' "$log" || fail "did not stop as it should"

begun=$SECONDS
make "$target"
status=$?
took=$((SECONDS - begun))
if [ "$status" = 0 ]; then said=passed; else said=FAILED; fi
printf 'first steps: make %s %s after %d:%02d\n' "$target" "$said" $((took / 60)) $((took % 60))
exit "$status"
