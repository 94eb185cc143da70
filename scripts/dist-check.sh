#!/bin/bash
# Builds a release of the last commit twice, in different folders and environments, and checks that all files are equal,
# that the programs run, and that standard tools can read the files.
# usage: scripts/dist-check.sh [ARCH,...]; with FRESH=1 the second build also ignores the build cache, which is slow
set -euo pipefail
cd "$(dirname "$0")/.."
archs=${1:-amd64,arm64,riscv64}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
say() { echo "== $*"; }

minisign -G -W -p "$work/key.pub" -s "$work/key" >/dev/null

# release FOLDER builds a release in a clone.
release() {
	git clone -q --no-hardlinks . "$1"
	make -s -C "$1" dist ARCH="$archs" KEY="$work/key"
}
say "first release"
release "$work/a"
say "second release"
(
	umask 077
	export TZ=Asia/Tokyo LC_ALL=C.UTF-8 GOFLAGS=-buildvcs=true
	if [ -n "${FRESH:-}" ]; then
		GOCACHE=$work/cache
		export GOCACHE
	fi
	release "$work/another/and deeper"
)
diff -r "$work/a/dist" "$work/another/and deeper/dist"
echo "$(find "$work/a/dist" -type f | wc -l) files are the same, bit for bit"

cd "$work/a/dist"
say "digests and signature"
sha256sum -c --quiet SHA256SUMS
minisign -Vqm SHA256SUMS -p "$work/key.pub"

say programs
declare -A machine=([amd64]=x86_64 [arm64]=aarch64 [riscv64]=riscv64)
for arch in ${archs//,/ }; do
	run=()
	if [ "${machine[$arch]}" != "$(uname -m)" ]; then
		run=("qemu-${machine[$arch]}" -L "/usr/${machine[$arch]}-linux-gnu")
	fi
	for archive in tilth-*-linux-"$arch"{,-static}.tar.gz; do
		tar -xzf "$archive" -C "$work"
		"${run[@]}" "$work/${archive%.tar.gz}/tilth" --version
	done
	dpkg-deb -x tilth-*-linux-"$arch".deb "$work/deb-$arch"
	cmp "$work/deb-$arch/usr/bin/tilth" "$work"/tilth-*-linux-"$arch"/tilth
done

say "Debian packages"
if command -v lintian >/dev/null; then
	lintian --allow-root --fail-on error,warning,info --info ./*.deb
else
	echo "lintian is not installed: not run"
fi
for page in "$work"/tilth-*-linux-"${archs%%,*}"/man/man1/*.1; do
	! man -l --warnings -E UTF-8 "$page" 2>&1 >/dev/null | grep . || exit 1
done

say install.sh
sh install.sh --to "$work/bin" --key "$work/key.pub"
"$work/bin/tilth" --version

say wheel
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --no-index --no-deps --find-links . tilth
"$work/venv/bin/python" -c 'from importlib.metadata import version; print("tilth", version("tilth"))'

say passed
