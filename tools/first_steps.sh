#!/usr/bin/env bash
# Do what README says at first, in a clone on a machine that has nothing yet: `make serve`, a request, Ctrl-C; then
# `make test`, or another target. Say how long each took; fail where one fails.
#
#   tools/first_steps.sh [TARGET]
set -u
cd "$(dirname "$0")/.." || exit 1
target=${1:-test}
log=$(mktemp)

# A server that does not serve in ten minutes never will.
begun=$SECONDS
setsid make serve >"$log" 2>&1 </dev/null &
server=$!
until .venv/bin/paddock create /first-steps data >/dev/null 2>&1; do
  if ! kill -0 "$server" 2>/dev/null || [ $((SECONDS - begun)) -gt 600 ]; then
    echo "first steps: make serve does not serve:" >&2
    tail -n 20 "$log" >&2
    kill -- -"$server" 2>/dev/null
    exit 1
  fi
  sleep 1
done
echo "first steps: make serve served after $((SECONDS - begun)) s"
# What Ctrl-C does: the signal goes to make and to the server.
kill -INT -- -"$server"
wait "$server"
if ! grep -q 'stopped' "$log"; then
  echo "first steps: make serve did not stop as it should:" >&2
  tail -n 20 "$log" >&2
  exit 1
fi

begun=$SECONDS
make "$target"
status=$?
took=$((SECONDS - begun))
if [ "$status" = 0 ]; then said=passed; else said=FAILED; fi
printf 'first steps: make %s %s after %d:%02d\n' "$target" "$said" $((took / 60)) $((took % 60))
exit "$status"
