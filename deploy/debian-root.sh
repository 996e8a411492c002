# shellcheck shell=bash disable=SC2154 # who sources it has $root
# Roots of other Debian releases, in which deploy/build-on-debian builds and deploy/try-on-debian installs. Sourced by
# both, which define `fail`; a root is in $root, and where its packages come from in $mirror, empty for where this
# machine has Debian's from.

# What making and mounting one takes: root, and the given programs beside debootstrap's.
need_for_roots() {
  ((EUID == 0)) || fail "making a root and mounting in it needs root: run it with sudo"
  local program
  for program in debootstrap unshare flock "$@"; do
    command -v "$program" >/dev/null || fail "$program is missing: apt-get install debootstrap util-linux iproute2"
  done
}

# Where this machine has Debian's archive from; nothing where it has none.
archive() {
  command -v apt-get >/dev/null || return 0
  apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' | awk '$1 == "Debian" { print $2; exit }'
}

# Makes $root anew, of the least that is a Debian.
make_root() {
  local suite=$1
  echo "== A root of $suite"
  rm -rf --one-file-system "$root"
  mkdir -p "$root"
  [[ $mirror ]] || mirror=$(archive)
  debootstrap --variant=minbase "$suite" "$root" ${mirror:+"$mirror"}
}

# This tree is /src in it, and can't be written to.
mount_root() {
  mkdir -p "$root/src"
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys"
  mount --rbind /dev "$root/dev"
  mount --bind "$PWD" "$root/src"
  mount -o remount,bind,ro "$root/src"
  [[ ! -e /etc/resolv.conf ]] || cp --dereference /etc/resolv.conf "$root/etc/resolv.conf"
  # As Debian's installer writes it, and debootstrap does not.
  [[ -e $root/etc/hosts ]] ||
    printf '127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n' >"$root/etc/hosts"
  mkdir -p "$root/etc/dpkg/dpkg.cfg.d"
  echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/unsafe-io" # what is lost with the machine is made again
}

unmount_root() {
  local folder
  for folder in proc sys dev src; do
    umount --recursive --lazy "$root/$folder"
  done
}

# A command in it, in /src, which sees nothing of this one's environment but what $in_environment has, as NAME=VALUE.
in_environment=()
in_root() {
  chroot "$root" env --ignore-environment PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM="${TERM:-dumb}" \
    LC_ALL=C.UTF-8 "${in_environment[@]}" sh -c 'cd /src && exec "$@"' sh "$@"
}
