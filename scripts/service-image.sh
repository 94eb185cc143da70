#!/bin/bash
# Builds a machine with systemd for QEMU: an image with a small Debian, its kernel, and an SSH key of root.
# usage: scripts/service-image.sh FOLDER; as root. Existing files are kept until this script changes
set -euo pipefail
cd "$(dirname "$0")/.."
out=$1
mirror=${MIRROR:-http://deb.debian.org/debian}
[ "$out/board.img" -nt "$0" ] && exit 0

mkdir -p "$out"
work=$(mktemp -d -p "$out")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
root=$work/root

echo "making a Debian system in $out"
debootstrap --variant=minbase --include=systemd,systemd-sysv,udev,openssh-server,linux-image-cloud-amd64 bookworm "$root" "$mirror" >"$out/debootstrap.log" ||
	{ tail -n 20 "$out/debootstrap.log" >&2 && exit 1; }
rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*

ssh-keygen -q -t ed25519 -N '' -f "$work/id"
install -D -m 0600 "$work/id.pub" "$root/root/.ssh/authorized_keys"
echo board >"$root/etc/hostname"
echo '/dev/vda / ext4 defaults 0 1' >"$root/etc/fstab"
printf '[Match]\nType=ether\n[Network]\nDHCP=ipv4\n' >"$root/etc/systemd/network/ether.network"
systemctl -q --root "$root" enable systemd-networkd
systemctl -q --root "$root" mask e2scrub_reap.service

cp "$root"/boot/vmlinuz-* "$work/kernel"
cp "$root"/boot/initrd.img-* "$work/initrd"
mke2fs -q -t ext4 -d "$root" "$work/board.img" 1G
mv -f "$work"/{id,kernel,initrd,board.img} "$out/"
