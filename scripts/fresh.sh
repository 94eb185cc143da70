#!/bin/bash
# Runs README's two commands as root in a clone of HEAD, in a minimal Debian with Go, make and git, which simulates a
# fresh machine. COMMANDS='test' runs one of them.
set -euo pipefail
cd "$(dirname "$0")/.."

repository=$PWD
root=$(mktemp -d /var/tmp/tilth-fresh-XXXXXX)
chmod 755 "$root" # tests start servers as other users
mount --bind "$root" "$root" # sandboxes can only make a mount point private
mounted=("$root")
clean() {
	for ((k = ${#mounted[@]} - 1; k >= 0; k--)); do umount -l "${mounted[k]}" || true; done
	rm -rf --one-file-system "$root"
}
trap clean EXIT

# The sources of packages are this machine's.
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
mirror=$({ cat /etc/apt/sources.list /etc/apt/sources.list.d/*.sources 2>/dev/null || true; } |
	awk '!/^#/ && !/security/ && !found && match($0, /https?:\/\/[^ ]+/) { print substr($0, RSTART, RLENGTH); found = 1 }')
debootstrap --variant=minbase --include=ca-certificates,git,make "$suite" "$root" "$mirror" >/dev/null
rm "$root/etc/apt/sources.list" # which repeats what follows
cp -a /etc/apt/. "$root/etc/apt/"
cp /etc/resolv.conf /etc/hosts "$root/etc/"
for folder in /usr/local/share/ca-certificates /etc/ssl/certs; do
	[ -d "$folder" ] && mkdir -p "$root$folder" && cp -aL --remove-destination "$folder/." "$root$folder/" # the root's own are links that lead out of it
done
mkdir -p "$root/usr/local/go"
cp -a "$(go env GOROOT)/." "$root/usr/local/go/"
git clone --quiet --no-local "file://$repository" "$root/root/tilth"
for folder in proc sys dev dev/pts dev/shm tmp; do
	mkdir -p "$root/$folder"
	case "$folder" in
	proc) mount -t proc proc "$root/proc" ;;
	tmp | dev/shm) mount -t tmpfs tmpfs "$root/$folder" ;;
	*) mount --bind "/$folder" "$root/$folder" ;;
	esac
	mounted+=("$root/$folder")
done

# shellcheck disable=SC2016 # expanded inside
for command in ${COMMANDS:-demo test}; do
	echo "== make $command"
	start=$SECONDS
	chroot "$root" /usr/bin/env -i PATH=/usr/local/go/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
		GOPROXY="$(go env GOPROXY)" GONOSUMDB="$(go env GONOSUMDB)" GOFLAGS="$(go env GOFLAGS)" GONOSUMCHECK=1 \
		GOSUMDB="$(go env GOSUMDB)" http_proxy="${http_proxy:-}" https_proxy="${https_proxy:-}" no_proxy="${no_proxy:-}" \
		make -C /root/tilth --no-print-directory "$command"
	echo "== make $command took $((SECONDS - start)) s"
done
