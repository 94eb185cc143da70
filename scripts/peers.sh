#!/bin/bash
# Installs the libraries whose single operators this repository compares with its own, and the programs that time
# them, into .tools/peers: the newest oneDNN and ggml that Debian has, unpacked beside the system, which stays as it is.
# Prints the folder; nothing where they are not to be had.
set -euo pipefail
cd "$(dirname "$0")/.."

sources=bench/operators/peer/src
to=$PWD/.tools/peers
root=$to/root
libraries=$root/usr/lib/x86_64-linux-gnu
[ "$(dpkg --print-architecture)" = amd64 ] || {
	echo "peers.sh: doing without oneDNN and ggml, which are measured on x86-64 only" >&2
	exit 0
}

# unpack takes the packages of Debian's unstable distribution, with a state of apt's of their own.
unpack() {
	local apt=$to/apt mirror
	mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' | awk '!/security/ && !seen++')
	rm -rf "$apt" "$root"
	mkdir -p "$apt"/{lists/partial,cache/archives/partial,packages} "$root"
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${mirror:?no archive of Debian is configured} sid main" >"$apt/sources.list"
	touch "$apt/status"
	local options=(-qq -o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State=$apt"
		-o "Dir::State::status=$apt/status" -o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root)
	apt-get "${options[@]}" update
	local onednn
	onednn=$(apt-cache "${options[@]}" depends libdnnl-dev | sed -n 's/.*Depends: \(libdnnl[0-9.]*\)$/\1/p' | head -1)
	(cd "$apt/packages" && apt-get "${options[@]}" download libdnnl-dev "$onednn" libggml-dev libggml0 libc6 libstdc++6 libgomp1 libgcc-s1)
	for package in "$apt"/packages/*.deb; do dpkg -x "$package" "$root"; done
	rm -rf "$apt"
}

# compile makes a program, and a command that starts it with the libraries that were unpacked.
compile() {
	local name=$1 loader
	shift
	g++ -O2 -std=c++17 -mclflushopt -Wall -Wextra -I"$root/usr/include" -I"$root/usr/include/x86_64-linux-gnu" "$sources/$name.cpp" \
		-o "$to/$name.bin" -L"$libraries" "$@" -Wl,--allow-shlib-undefined
	loader=$(find "$root" -name ld-linux-x86-64.so.2 -print -quit)
	printf '#!/bin/sh\nexec "%s" --library-path "%s" "%s" "$@"\n' "$loader" "$libraries" "$to/$name.bin" >"$to/$name.new"
	chmod +x "$to/$name.new"
	mv "$to/$name.new" "$to/$name"
}

stale() { [ ! -x "$to/$1" ] || [ "$sources/$1.cpp" -nt "$to/$1" ] || [ "$sources/talk.h" -nt "$to/$1" ]; }

mkdir -p "$to"
[ -e "$libraries/libdnnl.so" ] && [ -e "$libraries/libggml.so" ] || unpack
! stale onednn || compile onednn -ldnnl
! stale ggml || compile ggml -lggml -lggml-base
ln -sfn "$(find "$libraries/ggml" -maxdepth 1 -name 'backends*' -print -quit)" "$to/ggml-backends"
echo "$to"
