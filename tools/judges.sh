#!/usr/bin/env bash
# Make sure that the programs our tests are judged by are there: Apache ZooKeeper (server, zkCli,
# the C shell and the C client), Curator with a Java compiler, strace, and a C compiler with Python's
# headers, as Debian packages them. Installs what is missing if that is allowed; otherwise says what
# will be skipped. With CI set, a missing judge is a failure. `judges.sh compiler` only tells, by its
# status, whether modules can be compiled; `judges.sh valgrind` is about what counts instructions alone.
set -u
cd "$(dirname "$0")/.." || exit 1

python=.venv/bin/python
[ -x "$python" ] || python=${PYTHON:-python3}

have_headers() {
  "$python" -c 'import os, sysconfig
raise SystemExit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))'
}

if [ "${1:-}" = compiler ]; then
  command -v gcc >/dev/null && have_headers
  exit
fi

wanted=${1:-tests}
missing_packages() {
  if [ "$wanted" = valgrind ]; then
    command -v valgrind >/dev/null || echo valgrind
    return
  fi
  [ -e /usr/share/java/zookeeper.jar ] && [ -x /usr/share/zookeeper/bin/zkCli.sh ] &&
    command -v java >/dev/null || echo zookeeper
  [ -x /usr/lib/zookeeper/bin/cli_mt ] || echo zookeeper-bin
  [ -e /usr/include/zookeeper/zookeeper.h ] || echo libzookeeper-mt-dev
  [ -e /usr/share/java/curator-recipes.jar ] || echo libcurator-recipes-java
  [ -e /usr/share/java/slf4j-log4j12.jar ] || echo libslf4j-java
  [ -e /usr/share/java/log4j-1.2.jar ] || echo liblog4j1.2-java
  command -v javac >/dev/null || echo default-jdk-headless
  command -v strace >/dev/null || echo strace
  command -v gcc >/dev/null || echo gcc libc6-dev
  have_headers || echo python3-dev
}

missing=$(missing_packages)
[ -z "$missing" ] && exit 0
why=""

if ! command -v apt-get >/dev/null; then
  why="there is no apt-get here"
else
  as_root=()
  if [ "$(id -u)" != 0 ]; then
    as_root=(sudo -n)
    sudo -n true 2>/dev/null || why="installing needs root or a passwordless sudo"
  fi
  if [ -z "$why" ]; then
    echo "judges: installing" $missing
    # `zookeeper` starts no service (`zookeeperd` would); the tests start their own.
    install() {
      # shellcheck disable=SC2086
      "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -q --no-install-recommends $missing </dev/null
    }
    log=$(mktemp)
    # The package lists may be empty or stale: then one update, and one more try.
    install >"$log" 2>&1 ||
      { "${as_root[@]}" apt-get update -q >>"$log" 2>&1 && install >>"$log" 2>&1; } ||
      { why="apt-get failed"; tail -n 5 "$log" >&2; }
    rm -f "$log"
  fi
fi

missing=$(missing_packages)
[ -z "$missing" ] && exit 0
for package in $missing; do
  case $package in
    zookeeper) what="comparison with Apache ZooKeeper and zkCli" ;;
    zookeeper-bin) what="Apache's C shell" ;;
    libzookeeper-mt-dev) what="Apache's C client" ;;
    libcurator-recipes-java | default-jdk-headless) what="the judgement of Curator and Apache's Java client" ;;
    strace) what="the count of fdatasync calls" ;;
    gcc) what="the compiled build, the benchmark and Apache's C client" ;;
    python3-dev) what="the compiled build" ;;
    valgrind) what="the count of instructions" ;;
    *) continue ;;
  esac
  echo "judges: without $package, $what is skipped (${why:-it is still missing})" >&2
done
if [ -n "${CI:-}" ]; then
  echo "judges: CI is set, so a missing judge is a failure" >&2
  exit 1
fi
