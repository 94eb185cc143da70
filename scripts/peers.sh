#!/bin/bash
# Installs the libraries for comparisons, and the programs that time them, into .tools/peers: Debian's newest oneDNN,
# ggml, and ONNX Runtime with its oneDNN provider, unpacked beside the system. Prints the folder, or nothing if they are
# unavailable.
set -euo pipefail
cd "$(dirname "$0")/.."

sources=lab/bench/operators/peer/src models=lab/bench/models/peer
to=$PWD/.tools/peers
root=$to/root
libraries=$root/usr/lib/x86_64-linux-gnu
[ "$(dpkg --print-architecture)" = amd64 ] || {
	echo "peers.sh: doing without oneDNN, ggml and ONNX Runtime with oneDNN, which are measured on x86-64 only" >&2
	exit 0
}

. scripts/sid.bash

# unpack unpacks packages of Debian's unstable distribution.
unpack() {
	local apt=$to/apt options
	rm -rf "$root"
	mkdir -p "$root"
	sid_options "$apt"
	local headers=(libdnnl-dev libggml-dev libonnxruntime-dev) needed
	needed=$(
		apt-cache "${options[@]}" depends "${headers[@]}" | sed -n 's/.*Depends: \(lib\(dnnl\|ggml\|onnxruntime\)[0-9.]*\)$/\1/p'
		echo libonnxruntime-providers
	)
	# shellcheck disable=SC2086 # a list of names
	needed=$(apt-cache "${options[@]}" depends --recurse --no-{recommends,suggests,conflicts,breaks,replaces,enhances,pre-depends} $needed |
		grep '^[a-z]' | sort -u)
	# shellcheck disable=SC2086
	(cd "$apt/packages" && apt-get "${options[@]}" download "${headers[@]}" libc6 libgomp1 $needed)
	for package in "$apt"/packages/*.deb; do dpkg -x "$package" "$root"; done
	rm -rf "$apt"
}

# compile builds a program, and a command that starts it with the unpacked libraries.
compile() {
	local source=$1 name loader before='' after=''
	name=$(basename "$source" .cpp)
	shift
	g++ -O2 -std=c++17 -mclflushopt -Wall -Wextra -I"$root/usr/include" -I"$root/usr/include/x86_64-linux-gnu" "$source" \
		-o "$to/$name.bin" -L"$libraries" "$@" -Wl,--allow-shlib-undefined
	if [[ $name == onnxruntime ]]; then # which writes a line for each operator that it knows
		before='OMP_NUM_THREADS="$2" ' after=' 2>/dev/null'
	fi
	loader=$(find "$root" -name ld-linux-x86-64.so.2 -print -quit)
	printf '#!/bin/sh\n%sexec "%s" --library-path "%s" "%s" "$@"%s\n' "$before" "$loader" "$libraries" "$to/$name.bin" "$after" >"$to/$name.new"
	chmod +x "$to/$name.new"
	mv "$to/$name.new" "$to/$name"
}

stale() { [ ! -x "$to/$(basename "$1" .cpp)" ] || [ "$1" -nt "$to/$(basename "$1" .cpp)" ] || [ "$sources/talk.h" -nt "$to/$(basename "$1" .cpp)" ]; }

mkdir -p "$to"
[ -e "$libraries/libdnnl.so" ] && [ -e "$libraries/libggml.so" ] && [ -e "$libraries/libonnxruntime_providers_dnnl.so" ] || unpack
! stale "$sources/onednn.cpp" || compile "$sources/onednn.cpp" -ldnnl
! stale "$sources/ggml.cpp" || compile "$sources/ggml.cpp" -lggml -lggml-base
! stale "$models/onnxruntime.cpp" || compile "$models/onnxruntime.cpp" -lonnxruntime
ln -sfn "$(find "$libraries/ggml" -maxdepth 1 -name 'backends*' -print -quit)" "$to/ggml-backends"
echo "$to"
