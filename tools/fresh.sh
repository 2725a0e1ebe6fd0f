#!/usr/bin/env bash
# Make a fresh Debian in a folder, and run a command in a clone of this repository there.
#
#   tools/fresh.sh [--user] [--keep] SUITE [COMMAND...]
#
# SUITE is a name of Debian's: bookworm, trixie, forky. The machine has what debootstrap's "minbase" has, and
# python3, python3-venv, make and git. COMMAND runs with bash as root in /root/paddock, or with --user as somebody without
# rights in /home/user/paddock; without a COMMAND it is a shell. The clone is of the last commit.
#
# A machine is unpacked anew for each run, and removed afterwards; --keep says where it is instead. What it is unpacked
# from is made once a month and kept in a cache outside the tree ($XDG_CACHE_HOME/paddock/fresh, 350 MB for each suite);
# the machine is beside it while it runs, with 4 GB after `make test`. What a killed run has left there is removed.
# All processes of a machine end with its command; its mounts are seen by nobody else. It shares the network of this
# machine, its certificate authorities, and how apt and pip reach packages. DEBIAN_MIRROR names another mirror.
#
# It needs root, and debootstrap (which it installs), tar and util-linux.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "fresh: $*" >&2
  exit 2
}

user=""
keep=""
while true; do
  case ${1:-} in
    --user) user=user ;;
    --keep) keep=yes ;;
    -*) fail "there is no option $1; see the first lines of tools/fresh.sh" ;;
    *) break ;;
  esac
  shift
done
suite=${1:-}
[[ $suite =~ ^[a-z]+$ ]] || fail "which suite of Debian? tools/fresh.sh [--user] [--keep] bookworm|trixie [COMMAND...]"
shift
[ "$(id -u)" = 0 ] || fail "it needs root, to make a machine in a folder"
[ -z "$(git status --porcelain --untracked-files=no)" ] ||
  echo "fresh: the clone has the last commit, not what is changed here" >&2

mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/paddock/fresh
base=$cache/$suite.tar
mkdir -p "$cache"
# A folder belongs to a run as long as a process of it holds the lock. Nothing is mounted in it once the processes of the run have
# ended, as its mounts were theirs alone.
for left in "$cache/$suite".*/; do
  [ -d "$left" ] || continue
  flock --nonblock "$left" rm -rf --one-file-system "$left" || true
done
work=$(mktemp -d "$cache/$suite.XXXXXX")
exec 9<"$work"
flock 9
trap 'rm -rf --one-file-system "$work"' EXIT
machine=$work/machine

# Run a command in namespaces of its own, which a signal ends with all its processes and mounts.
contained() {
  local status=0
  run() { exec unshare --mount --uts --ipc --pid --fork --kill-child "$@"; }
  run "$@" <&0 &
  child=$!
  trap 'kill -KILL "$child"' INT TERM HUP
  wait "$child" || status=$?
  # After a signal it takes a moment until nothing of it is left.
  wait "$child" 2>/dev/null || true
  trap - INT TERM HUP
  return "$status"
}

# What apt of this machine was told about reaching packages.
apt_settings() {
  command -v apt-config >/dev/null || return 0
  apt-config dump | grep -E '^Acquire::(http|https|Check-Valid-Until|Retries)\b' | grep -v '""' || true
}

make_base() {
  command -v debootstrap >/dev/null ||
    { apt-get install -y -q debootstrap || { apt-get update -q && apt-get install -y -q debootstrap; }; } >"$work/log" 2>&1 ||
    { tail -n 5 "$work/log" >&2; fail "debootstrap is missing, and apt-get could not install it"; }
  echo "fresh: making a Debian $suite, once a month" >&2
  # ca-certificates is there for the authorities of this machine.
  contained debootstrap --variant=minbase --include=python3,python3-venv,make,git,ca-certificates \
    "$suite" "$machine" "$mirror" >"$work/log" 2>&1 ||
    { tail -n 5 "$work/log" >&2; fail "debootstrap could not make a Debian $suite from $mirror"; }
  rm -f "$machine"/var/cache/apt/archives/*.deb
  tar -cf "$work/base.tar" -C "$machine" .
  mv "$work/base.tar" "$base"
  rm -rf "$machine"
}

[ -n "$(find "$base" -mtime -30 2>/dev/null)" ] || make_base
mkdir "$machine"
tar -xf "$base" -C "$machine"
echo fresh >"$machine/etc/hostname"
echo '127.0.0.1 localhost fresh' >"$machine/etc/hosts"
cat /etc/resolv.conf >"$machine/etc/resolv.conf"
apt_settings >"$machine/etc/apt/apt.conf.d/50-as-outside"
cat /usr/local/share/ca-certificates/*.crt >>"$machine/etc/ssl/certs/ca-certificates.crt" 2>/dev/null || true

home=/root
if [ -n "$user" ]; then
  home=/home/$user
  chroot "$machine" useradd --create-home --shell /bin/bash "$user"
fi
git clone --quiet --no-hardlinks . "$machine$home/paddock"
[ -z "$user" ] || chroot "$machine" chown -R "$user:" "$home/paddock"

# A first process mounts what a machine has, with terminals of its own, and becomes the command.
cat >"$work/first" <<'END'
set -eu
machine=$1 home=$2 user=$3
shift 3
hostname fresh
# `ip netns` wants a root that is a mount.
mount --bind "$machine" "$machine"
# `ip netns` mounts in /run.
mount -t tmpfs -o mode=755 run "$machine/run"
mkdir -p "$machine/run/lock"
mount -t proc proc "$machine/proc"
mount -t sysfs sys "$machine/sys"
mount -t tmpfs -o mode=755 dev "$machine/dev"
for device in null zero full random urandom tty; do
  touch "$machine/dev/$device"
  mount --bind "/dev/$device" "$machine/dev/$device"
done
mkdir "$machine/dev/pts" "$machine/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts "$machine/dev/pts"
mount -t tmpfs -o mode=1777 shm "$machine/dev/shm"
ln -s pts/ptmx "$machine/dev/ptmx"
ln -s /proc/self/fd "$machine/dev/fd"
ln -s /proc/self/fd/0 "$machine/dev/stdin"
ln -s /proc/self/fd/1 "$machine/dev/stdout"
ln -s /proc/self/fd/2 "$machine/dev/stderr"
as=()
[ -z "$user" ] || as=(setpriv --reuid "$user" --regid "$user" --init-groups)
exec chroot "$machine" "${as[@]}" bash -c 'cd "$HOME/paddock" && if [ $# = 0 ]; then exec bash; else exec bash -c "$*"; fi' bash "$@"
END

# Of the environment, a machine has only what says how packages are reached.
environment=("HOME=$home" "USER=${user:-root}" "LANG=C.UTF-8" "TERM=${TERM:-dumb}"
  "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
  "PIP_CERT=/etc/ssl/certs/ca-certificates.crt")
for name in CI http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY PIP_INDEX_URL PIP_DEFAULT_TIMEOUT; do
  [ -z "${!name:-}" ] || environment+=("$name=${!name}")
done

status=0
inside=(env --ignore-environment "${environment[@]}" bash "$work/first" "$machine" "$home" "$user")
if [ $# = 0 ]; then
  # A shell for people: a signal from their terminal is the shell's.
  trap '' INT
  unshare --mount --uts --ipc --pid --fork --kill-child "${inside[@]}" || status=$?
else
  contained env --default-signal=INT,QUIT "${inside[@]}" "$@" || status=$?
fi
if [ -n "$keep" ]; then
  trap - EXIT
  echo "fresh: it is kept in $machine" >&2
fi
exit "$status"
