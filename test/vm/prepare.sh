#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# prepare.sh [CACHE]: fetch what test/vm boots from: qemu (installed), and a
# kernel and a static busybox (unpacked into CACHE, default .cache/vm at the
# top of the repository, not installed). For Debian and Ubuntu on amd64. Safe to
# run again: what is there stays; remove CACHE to have a newer kernel.
set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)
cache=${1:-$top/.cache/vm}

say() { echo "prepare: $*"; }

as_root() {
	if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

updated=
update_once() {
	[ -z "$updated" ] || return 0
	say "updating the package lists"
	as_root apt-get update -qq
	updated=yes
}

# kernel_package prints the package that holds the image the distribution's
# smallest general kernel metapackage depends on.
kernel_package() {
	for meta in linux-image-cloud-amd64 linux-image-virtual; do
		package=$(apt-cache depends "$meta" 2>/dev/null |
			awk '$1 ~ /Depends:$/ && $2 ~ /^linux-image-[0-9]/ { print $2; exit }')
		if [ -n "$package" ]; then
			echo "$package"
			return
		fi
	done
	echo "prepare: no kernel package known to apt" >&2
	return 1
}

# take PACKAGE NAME PATTERN...: put the one file of PACKAGE that matches a
# pattern into the cache as NAME, whole or not at all.
take() {
	package=$1 name=$2
	shift 2
	say "fetching $package for $cache/$name"
	mkdir "$work/$name"
	(
		cd "$work/$name"
		# apt's own user may not write here, which it would warn about.
		apt-get download -qq -o APT::Sandbox::User=root "$package"
		dpkg -x ./*.deb tree
	)
	for pattern in "$@"; do
		# Unquoted on purpose: the pattern is to be expanded.
		for file in "$work/$name"/tree/$pattern; do
			[ -f "$file" ] || continue
			install -m 0755 "$file" "$cache/$name.new"
			mv "$cache/$name.new" "$cache/$name"
			return
		done
	done
	echo "prepare: $package holds no $*" >&2
	return 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$cache"
cache=$(cd "$cache" && pwd)

if command -v qemu-system-x86_64 >/dev/null; then
	say "qemu is installed"
else
	update_once
	say "installing qemu-system-x86"
	as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get install -qq -y --no-install-recommends qemu-system-x86 >/dev/null
fi

if [ -f "$cache/vmlinuz" ]; then
	say "$cache/vmlinuz is there"
else
	update_once
	kernel=$(kernel_package)
	take "$kernel" vmlinuz 'boot/vmlinuz-*'
fi

if [ -f "$cache/busybox" ]; then
	say "$cache/busybox is there"
else
	update_once
	take busybox-static busybox bin/busybox usr/bin/busybox
fi

say "ready"
