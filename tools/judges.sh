#!/usr/bin/env bash
# Install the programs that our tests compare Paddock with: Apache ZooKeeper (server, zkCli,
# the C shell and the C client), Curator with a Java compiler, strace, and a C compiler with Python's
# headers, etcd, on which several servers share a log, Prometheus, the browser Chromium, and MIT's
# Kerberos, as Debian packages. What Python needs for Kerberos is compiled from PyPI. Missing packages are installed if that is allowed; otherwise the script
# says which tests are skipped. With CI set, a missing program is an error. `judges.sh compiler` only
# returns, as its status, whether modules can be compiled, and `judges.sh another-python` whether Debian's own Python is
# another one than that of .venv, and can run Paddock; `judges.sh valgrind` installs only valgrind, and
# `judges.sh postgresql` only PostgreSQL and what Patroni needs beside it;
# `judges.sh missing` lists the packages that would be installed.
# `judges.sh zookeeper-3.9` fetches a second Apache ZooKeeper, 3.9.5, with Curator 5.9: PySpark's source
# distribution carries their jars. They go into a cache outside the tree, once.
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

# The Python of the distribution, if it is not the one in .venv. What is older than 3.11 is not for us.
debian_python=/usr/bin/python3
is_another_python() {
  [ -x "$debian_python" ] || return
  "$debian_python" -c 'import sys
raise SystemExit(sys.version_info < (3, 11))' || return
  [ "$("$debian_python" -c 'import sys; print(sys.version)')" != "$("$python" -c 'import sys; print(sys.version)')" ]
}

if [ "${1:-}" = another-python ]; then
  is_another_python || exit
  "$debian_python" -c 'import ensurepip' 2>/dev/null && exit
  echo "judges: without python3-venv, the unit tests do not run on Debian's own Python" >&2
  [ -n "${CI:-}" ]
  exit
fi

# The jars that are taken from PySpark: the server, its clients, and their dependencies. Jetty is not
# among them: the admin server runs with Debian's.
spark=4.3.0
spark_sha256=e8c517948eff7088a7aa07449aa8eafa4a15a8d50319de2525a6fd26622476c6
jars="zookeeper-3.9.5 zookeeper-jute-3.9.5 audience-annotations-0.12.0
  curator-client-5.9.0 curator-framework-5.9.0 curator-recipes-5.9.0
  slf4j-api-2.0.17 log4j-api-2.25.4 log4j-core-2.25.4 log4j-slf4j2-impl-2.25.4
  netty-buffer-4.2.13.Final netty-codec-base-4.2.13.Final netty-common-4.2.13.Final
  netty-handler-4.2.13.Final netty-resolver-4.2.13.Final
  netty-tcnative-classes-2.0.76.Final netty-transport-4.2.13.Final
  netty-transport-classes-epoll-4.2.13.Final netty-transport-native-unix-common-4.2.13.Final
  commons-cli-1.11.0 commons-io-2.22.0 jackson-annotations-2.21 jackson-core-2.21.2
  jackson-databind-2.21.2 jline-2.14.6 metrics-core-4.2.37 snappy-java-1.1.10.8"

# Print the jars that a folder lacks, or why its server is not the expected one.
flaw_of() {
  local jar
  for jar in $jars; do
    [ -s "$1/$jar.jar" ] || { echo "$jar.jar is not there"; return; }
  done
  "$python" - "$1/zookeeper-3.9.5.jar" <<'END'
import sys
import zipfile

try:
    with zipfile.ZipFile(sys.argv[1]) as jar:
        manifest = jar.read("META-INF/MANIFEST.MF").decode().split()
    version = manifest[manifest.index("Implementation-Version:") + 1]
except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
    print(f"zookeeper-3.9.5.jar cannot be read: {error}")
else:
    if version != "3.9.5":
        print(f"zookeeper-3.9.5.jar says that it is {version}")
END
}

fetch_zookeeper_39() {
  local cache=${XDG_CACHE_HOME:-$HOME/.cache}/paddock
  local folder=$cache/zookeeper-3.9.5
  [ -d "$folder" ] && [ -z "$(flaw_of "$folder")" ] && return
  mkdir -p "$cache" || { echo "judges: $cache cannot be made" >&2; return 1; }
  echo "judges: fetching Apache ZooKeeper 3.9.5: 450 MB of PySpark $spark, of which 17 MB stay in $folder"
  # pip unpacks the download, which needs 1.5 GB for a while; /tmp may be too small.
  local work
  work=$(mktemp -d "$cache/fetching.XXXXXX") || return 1
  # shellcheck disable=SC2064
  trap "rm -rf '$work'" EXIT
  mkdir "$work/jars"
  echo "pyspark==$spark --hash=sha256:$spark_sha256" >"$work/wanted.txt"
  if ! TMPDIR=$work "$python" -m pip --quiet --disable-pip-version-check download --no-cache-dir --no-deps \
    --no-binary pyspark --require-hashes --dest "$work" --requirement "$work/wanted.txt" \
    >"$work/log" 2>&1 </dev/null; then
    echo "judges: pip could not download PySpark $spark:" >&2
    grep -v '^WARNING' "$work/log" | tail -n 5 >&2
    return 1
  fi
  # shellcheck disable=SC2086
  if ! printf "pyspark-$spark/deps/jars/%s.jar\n" $jars >"$work/members" ||
    ! tar --no-same-owner -xzf "$work/pyspark-$spark.tar.gz" -C "$work/jars" --strip-components=3 -T "$work/members"; then
    echo "judges: the jars could not be taken out of PySpark $spark" >&2
    return 1
  fi
  local flaw
  flaw=$(flaw_of "$work/jars")
  if [ -n "$flaw" ]; then
    echo "judges: PySpark $spark does not hold Apache ZooKeeper 3.9.5: $flaw" >&2
    return 1
  fi
  rm -rf "$folder" && mv "$work/jars" "$folder"
}

if [ "${1:-}" = zookeeper-3.9 ]; then
  fetch_zookeeper_39
  exit
fi

wanted=${1:-tests}
missing_packages() {
  if [ "$wanted" = valgrind ]; then
    command -v valgrind >/dev/null || echo valgrind
    return
  fi
  if [ "$wanted" = postgresql ]; then
    compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || echo postgresql
    # Root's own Python may be where PostgreSQL's user cannot run it; then Patroni runs with Debian's.
    [ "$(id -u)" != 0 ] || /usr/bin/python3 -c 'import ensurepip' 2>/dev/null || echo python3-venv
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
  command -v etcd >/dev/null || echo etcd-server
  command -v etcdctl >/dev/null || echo etcd-client
  command -v prometheus >/dev/null && command -v promtool >/dev/null || echo prometheus
  command -v chromium >/dev/null || echo chromium
  command -v ip >/dev/null || echo iproute2
  [ -x /usr/sbin/krb5kdc ] || echo krb5-kdc
  [ -x /usr/sbin/kadmin.local ] || echo krb5-admin-server
  command -v kinit >/dev/null || echo krb5-user
  command -v krb5-config >/dev/null || echo libkrb5-dev
  compgen -G '/usr/lib/*/faketime/libfaketime.so.1' >/dev/null || echo libfaketime
  command -v gcc >/dev/null || echo gcc libc6-dev
  have_headers || echo python3-dev
  # In a virtual environment of its own.
  ! is_another_python || "$debian_python" -c 'import ensurepip' 2>/dev/null || echo python3-venv
}

# Not among the development tools: `make quick` needs no compiler.
install_gssapi() {
  [ "$wanted" = tests ] && [ -x .venv/bin/python ] || return 0
  "$python" -c 'import gssapi, kerberos' 2>/dev/null && return
  local reason="Kerberos's headers, a C compiler or Python's headers are missing"
  if command -v krb5-config >/dev/null && command -v gcc >/dev/null && have_headers; then
    echo "judges: compiling gssapi and pykerberos"
    "$python" -m pip install --quiet --disable-pip-version-check --require-hashes \
      --no-build-isolation --requirement requirements/kerberos.txt </dev/null && return
    reason="pip failed"
  fi
  echo "judges: without gssapi, everything about Kerberos is skipped ($reason)" >&2
  [ -z "${CI:-}" ]
}

# On one line, with spaces between them.
missing=$(echo $(missing_packages))
[ "$wanted" = missing ] && { echo "$missing"; exit 0; }
[ -z "$missing" ] && { install_gssapi; exit; }
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
    # `etcd-server`, `prometheus`, `postgresql` and Kerberos would start one, which the tests do not need and a user
    # may not want.
    policy=/usr/sbin/policy-rc.d
    forbid_services() {
      [ -e "$policy" ] && return
      printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
      "${as_root[@]}" chmod 755 "$policy"
      # shellcheck disable=SC2064
      trap "${as_root[*]} rm -f '$policy'" EXIT
    }
    new_services=""
    case " $missing " in *" etcd-server "*) new_services="etcd" ;; esac
    case " $missing " in *" prometheus "*) new_services="$new_services prometheus" ;; esac
    case " $missing " in *" krb5-kdc "*) new_services="$new_services krb5-kdc" ;; esac
    case " $missing " in
      *" krb5-admin-server "*) new_services="$new_services krb5-admin-server" ;;
    esac
    case " $missing " in *" postgresql "*) new_services="$new_services postgresql" ;; esac
    [ -n "$new_services" ] && forbid_services
    log=$(mktemp)
    # The package lists may be empty or stale: then one update, and one more try.
    install >"$log" 2>&1 ||
      { "${as_root[@]}" apt-get update -q >>"$log" 2>&1 && install >>"$log" 2>&1; } ||
      { why="apt-get failed"; tail -n 5 "$log" >&2; }
    rm -f "$log"
    # Nor with the next start of the machine.
    if [ -n "$new_services" ] && command -v systemctl >/dev/null; then
      # shellcheck disable=SC2086
      "${as_root[@]}" systemctl --quiet disable $new_services >/dev/null 2>&1
    fi
  fi
fi

install_gssapi || exit 1
missing=$(missing_packages)
[ -z "$missing" ] && exit 0
for package in $missing; do
  case $package in
    zookeeper) what="comparison with Apache ZooKeeper and zkCli" ;;
    zookeeper-bin) what="Apache's C shell" ;;
    libzookeeper-mt-dev) what="Apache's C client" ;;
    libcurator-recipes-java | default-jdk-headless) what="the judgement of Curator and Apache's Java client" ;;
    etcd-server | etcd-client) what="everything about several servers on etcd" ;;
    prometheus) what="everything in a real Prometheus, and the check of the alert rules" ;;
    chromium) what="the dashboard in a browser" ;;
    iproute2) what="everything in network namespaces" ;;
    krb5-kdc | krb5-admin-server | krb5-user | libkrb5-dev) what="everything about Kerberos" ;;
    libfaketime) what="Kerberos with clocks that differ" ;;
    strace) what="the count of fdatasync calls" ;;
    gcc) what="the compiled build, the benchmark and Apache's C client" ;;
    python3-dev) what="the compiled build" ;;
    valgrind) what="the count of instructions" ;;
    postgresql) what="Patroni" ;;
    python3-venv) what="what runs on Debian's own Python" ;;
    *) continue ;;
  esac
  echo "judges: without $package, $what is skipped (${why:-it is still missing})" >&2
done
if [ -n "${CI:-}" ]; then
  echo "judges: CI is set, so a missing judge is a failure" >&2
  exit 1
fi
