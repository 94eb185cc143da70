#!/bin/sh
# Installs tilth from a release: verifies the signature and the digest, and installs the program in the PATH.
#   sh install.sh                                           in the folder of a release
#   curl -fsSL URL/install.sh | sh -s -- --from URL         from a server
# Options:
#   --from URL|FOLDER   location of the release (default: the folder of this script)
#   --to FOLDER         folder for the program (default: /usr/local/bin for root, else ~/.local/bin)
#   --key KEY|FILE      minisign public key that must have signed the release
#   --static            the static program, which cannot run packages on processors
set -eu

fail() {
	echo "install.sh: $*" >&2
	exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# fetch FILE copies a file of the release into the temporary folder.
fetch() {
	case "$from" in
	http://* | https://*)
		if have curl; then
			curl -fsSL --proto-redir "=$(echo "$from" | cut -d: -f1)" --retry 2 -o "$work/$1" "$from/$1" || fail "cannot fetch $from/$1: is it the address of a release?"
		elif have wget; then
			wget -q -O "$work/$1" "$from/$1" || fail "cannot fetch $from/$1: is it the address of a release?"
		else
			fail "there is neither curl nor wget to fetch $from/$1: install one"
		fi
		;;
	*)
		[ -f "$from/$1" ] || fail "$from has no $1: name the folder of a release with --from"
		cp "$from/$1" "$work/$1"
		;;
	esac
}

# architecture prints the name of this machine's architecture in releases.
architecture() {
	[ "$(uname -s)" = Linux ] || fail "no release for $(uname -s): tilth runs on Linux"
	case "$(uname -m)" in
	x86_64 | amd64) echo amd64 ;;
	aarch64 | arm64) echo arm64 ;;
	riscv64) echo riscv64 ;;
	*) fail "no release for the architecture $(uname -m): build tilth from source" ;;
	esac
}

# loader ARCHITECTURE prints the path of glibc's dynamic linker.
loader() {
	case "$1" in
	amd64) echo /lib64/ld-linux-x86-64.so.2 ;;
	arm64) echo /lib/ld-linux-aarch64.so.1 ;;
	riscv64) echo /lib/ld-linux-riscv64-lp64d.so.1 ;;
	esac
}

# verify checks the signature of the digests.
verify() {
	if [ -z "$key" ]; then
		echo "install.sh: no --key is given: the signature of the release is not checked" >&2
		return
	fi
	have minisign || fail "there is no minisign to check the signature: install it, or leave out --key"
	fetch SHA256SUMS.minisig
	if [ -f "$key" ]; then
		minisign -Vqm "$work/SHA256SUMS" -p "$key" >/dev/null || fail "the release is not signed with the key in $key"
	else
		minisign -Vqm "$work/SHA256SUMS" -P "$key" >/dev/null || fail "the release is not signed with the key $key"
	fi
}

# choose prints the name of the archive for this machine.
choose() {
	names=$(sed -n "s/^[0-9a-f]\{64\}  \(tilth-[0-9A-Za-z.+~-]*-linux-$arch$kind\.tar\.gz\)\$/\1/p" "$work/SHA256SUMS")
	[ -n "$names" ] || fail "the release at $from has no archive for linux-$arch$kind"
	[ "$(echo "$names" | wc -l)" -eq 1 ] || fail "the release at $from has several archives for linux-$arch$kind"
	echo "$names"
}

# place installs the program atomically, also over a running one. It tests the program in its final folder, because
# some systems do not execute files in temporary folders.
place() {
	[ ! -d "$to/tilth" ] || fail "$to/tilth is a folder: choose another one with --to"
	mkdir -p "$to" || fail "cannot make the folder $to: choose another one with --to"
	staged=$to/.tilth.$$
	cp "$1" "$staged" 2>/dev/null || fail "cannot write to $to: choose another folder with --to, or run this as root"
	chmod 0755 "$staged"
	version=$("$staged" --version) || fail "the program of $archive does not run on this machine, or not in $to"
	mv -f "$staged" "$to/tilth"
	staged=''
}

main() {
	from='' to='' key='' kind='' staged=''
	while [ $# -gt 0 ]; do
		case "$1" in
		--from | --to | --key)
			[ $# -ge 2 ] || fail "$1 wants a value"
			case "$1" in
			--from) from=${2%/} ;;
			--to) to=$2 ;;
			--key) key=$2 ;;
			esac
			shift 2
			;;
		--static) kind=-static && shift ;;
		*) fail "unknown option $1: want --from, --to, --key or --static" ;;
		esac
	done
	if [ -z "$from" ]; then
		[ ! -f "$0" ] || from=$(dirname "$0")
		[ -f "$from/SHA256SUMS" ] || fail "where is the release? Give --from URL or --from FOLDER"
	fi
	if [ -z "$to" ]; then
		to=${HOME:-/root}/.local/bin
		[ "$(id -u)" -ne 0 ] || to=/usr/local/bin
	fi
	arch=$(architecture)
	if [ -z "$kind" ] && [ ! -e "$(loader "$arch")" ]; then
		echo "install.sh: this system has no glibc: the static program is installed, which runs no packages on processors" >&2
		kind=-static
	fi
	work=$(mktemp -d)
	trap 'rm -rf "$work" ${staged:+"$staged"}' EXIT
	trap 'exit 130' INT TERM

	fetch SHA256SUMS
	verify
	archive=$(choose)
	fetch "$archive"
	(cd "$work" && grep -F "  $archive" SHA256SUMS | sha256sum -c >/dev/null 2>&1) ||
		fail "$archive is damaged or was changed: its digest is not the one in SHA256SUMS. Fetch the release again"
	tar -xzf "$work/$archive" -C "$work" || fail "cannot unpack $archive"
	place "$work/${archive%.tar.gz}/tilth"

	echo "installed $version as $to/tilth"
	case ":$PATH:" in
	*":$to:"*) echo "next: tilth doctor" ;;
	*) echo "next: export PATH=$to:\$PATH && tilth doctor" ;;
	esac
}

# Last, so that a truncated script does nothing.
main "$@"
