# Functions for tests in a Debian of their own, to be sourced by root. Nothing is mounted that the caller could see:
# debootstrap and each command run in their own mount namespace, and their mounts end with it. So `rm` of the directory
# cannot reach another file system, and it would stop there.
#
# MIRROR: where Debian's packages come from; by default where this machine has them from. SUITE: bookworm.

SUITE=${SUITE:-bookworm}

find_mirror() {
  apt-cache policy | sed -n 's|^ *[0-9-]* \(http[^ ]*\) [^ ]*/main .*|\1|p' | grep -v security | head -n 1
}

MIRROR=${MIRROR:-$(find_mirror)}

# make_root CACHE: sets $root to a new Debian with the essential packages and apt. CACHE, an archive, is made if needed.
make_root() {
  root=$(mktemp -d)
  trap remove_root EXIT
  if [ ! -e "$1" ]; then
    mkdir -p "$(dirname "$1")"
    unshare --mount debootstrap --variant=minbase "$SUITE" "$root" "$MIRROR" >"$1.log" 2>&1 || {
      tail -n 20 "$1.log" >&2
      exit 1
    }
    echo "deb $MIRROR $SUITE main" >"$root/etc/apt/sources.list"
    echo 'APT::Install-Recommends "false";' >"$root/etc/apt/apt.conf.d/recommends"
    tar --one-file-system -C "$root" -cf "$1.new" .
    mv "$1.new" "$1"
  else
    tar -C "$root" -xf "$1"
  fi
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  mkdir "$root/work"
}

# run_in_root COMMAND...: runs a command in the root's directory /work, with /proc and no daemon's access.
run_in_root() {
  unshare --mount --pid --fork --mount-proc="$root/proc" \
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/work LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    chroot "$root" sh -c 'cd /work && exec "$@"' sh "$@"
}

install_in_root() {
  {
    run_in_root apt-get -q update
    run_in_root apt-get -q -y install "$@"
  } >"$root/work/apt.log" 2>&1 || {
    tail -n 20 "$root/work/apt.log" >&2
    exit 1
  }
}

# list_files: all files of the root, without those that apt, dpkg and the tools for users and groups keep for themselves
# (openssh-client, which Open MPI brings along, adds a group).
list_files() {
  (cd "$root" && find . -xdev \( -path ./work -o -path ./proc -o -path ./run -o -path ./tmp -o -path ./var/cache \
    -o -path ./var/log -o -path ./var/lib/apt -o -path ./var/lib/dpkg -o -path './etc/*-' \) -prune -o -print) | sort
}

remove_root() {
  if grep -q " $root" /proc/self/mounts; then
    echo "something is mounted in $root, which stays" >&2
    return 1
  fi
  rm -rf --one-file-system "$root"
}
