#!/usr/bin/env bash
# Say what `make test` installs, and how long it takes, before it begins.
# `announce.sh .venv`: the environment does not exist yet.
set -u
cd "$(dirname "$0")/.." || exit 1

new_environment=${1:-}
packages=$(tools/judges.sh missing)

echo 'make test: lint, types, and every test, on a compiled build and on plain Python.'
[ -n "$new_environment" ] &&
  echo "  It installs the development tools from PyPI into $new_environment: about 500 MB, in a minute or two."
if [ -n "$packages" ]; then
  echo "  It installs Debian packages, as root: $packages."
  echo '  Without the right to do so, it goes on and skips the tests that need them.'
fi
echo '  It takes 20 to 30 minutes on two cores. `make quick` gives a first answer in two.'
