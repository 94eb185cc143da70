#!/bin/bash
# Runs everything that needs an NVIDIA GPU, in at most nine minutes: conformance cases, random points, checkers, the
# card's rates, tuning, comparisons with PyTorch if python3 has it, and kernels that call cuBLASLt if the loader finds
# it. Results are lines of lab/bench/results/card/results.jsonl, and records lie beside them; commit both.
# Finished work of this version is skipped, so that another run continues, also on another machine.
#
# usage: scripts/gpu.sh [FLAGS]     what 'go run ./lab gpu -help' lists, such as -only machine,product or -plan
#        scripts/gpu.sh pack        collects in .tools/gpu what a machine without Go and clang 19 needs
#        scripts/gpu.sh version     prints the version of the results
#        scripts/gpu.sh table       prints the results in Markdown
set -euo pipefail
cd "$(dirname "$0")/.."

# Seconds of a run, including building and unpacking.
limit=540
packed=.tools/gpu
# Location of a packed compiler: the sandbox of compilers shows /usr/lib. Its programs look for libraries in
# $ORIGIN/../lib, which fails without /proc; this name has the same length and replaces that one.
home=/usr/lib/tlgpu
origin=\$ORIGIN/../lib

build() { # FOLDER
	mkdir -p "$1"
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$1/tilth" ./cmd/tilth
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$1/lab" ./lab
}

# A stub of a library that LLVM links with but never calls here.
stub() { # SONAME FOLDER PATTERN
	local llvm=/usr/lib/x86_64-linux-gnu/libLLVM.so.19.1
	objdump -T $llvm | awk -v pattern="^($3)" '/\*UND\*/ && $NF ~ pattern {
		v = $(NF - 1); gsub(/[()]/, "", v); print (v ~ /^LIB/ ? v : "-"), $NF }' >"$2/symbols"
	awk '{ printf "void %s(void) { __builtin_trap(); }\n", $2 }' "$2/symbols" >"$2/stub.c"
	awk '$1 != "-" { names[$1] = names[$1] $2 ";" } END { for (v in names) printf "%s { global: %s };\n", v, names[v] }' \
		"$2/symbols" >"$2/versions"
	local script=()
	[ ! -s "$2/versions" ] || script=("-Wl,--version-script=$2/versions")
	clang-19 -w -shared -fPIC -fuse-ld=lld "-Wl,-soname,$1" "${script[@]}" "$2/stub.c" -o "$2/$1"
	rm "$2/symbols" "$2/stub.c" "$2/versions"
}

# The compiler with the libraries missing on other systems, without support for other languages and machines.
pack_compiler() { # FOLDER
	local llvm=/usr/lib/llvm-19 library
	mkdir -p "$1/bin" "$1/lib/clang/19/lib/linux"
	cp -L $llvm/bin/clang "$1/bin/clang-19"
	cp -L $llvm/bin/lld "$1/bin/lld"
	ln -s lld "$1/bin/ld.lld"
	cp -r $llvm/lib/clang/19/include "$1/lib/clang/19/"
	cp $llvm/lib/clang/19/lib/linux/libclang_rt.builtins-x86_64.a "$1/lib/clang/19/lib/linux/"
	for library in libLLVM.so.19.1 libclang-cpp.so.19.1 libffi.so.8 libz.so.1 libzstd.so.1 libtinfo.so.6; do
		cp -L "$(ldconfig -p | awk -v name=$library '$1 == name { print $NF; exit }')" "$1/"
	done
	stub libz3.so.4 "$1" Z3_
	stub libxml2.so.2 "$1" xml
	stub libedit.so.2 "$1" 'el_|history'
	sed -i "s#\\\$ORIGIN/\\.\\./lib#$home#" "$1"/bin/clang-19 "$1"/bin/lld "$1"/libLLVM.so.19.1 "$1"/libclang-cpp.so.19.1
}

pack() {
	[ ${#home} = ${#origin} ]
	rm -rf "$packed"
	mkdir -p "$packed"
	pack_compiler "$packed/llvm"
	tar -C "$packed/llvm" -c . | xz -9 -T1 >"$packed/llvm.tar.xz"
	build "$packed/tilth/bin"
	cp -r /usr/share/libonnx-testdata/data/node "$packed/tilth/cases"
	scripts/version.sh >"$packed/tilth/version"
	tar -C "$packed/tilth" -c . | xz -9 -T1 >"$packed/tilth.tar.xz"
	rm -rf "$packed/llvm" "$packed/tilth"
	du -sh "$packed"
}

# Unpacks the compiler, unless it is unpacked: beside its final place, so that it appears atomically.
unpack() {
	local sum
	sum=$(cat "$packed"/*.tar.xz | sha256sum)
	[ "$(cat $home/sum 2>/dev/null)" != "$sum" ] || return 0
	rm -rf $home.new
	mkdir -p $home.new
	for part in llvm tilth; do
		tar -C $home.new -xJf "$packed/$part.tar.xz"
	done
	echo "$sum" >$home.new/sum
	rm -rf $home
	mv $home.new $home
}

case ${1:-} in
pack)
	pack
	exit
	;;
version)
	exec scripts/version.sh
	;;
table)
	exec go run ./lab gpu table
	;;
esac
if [ -e "$packed/tilth.tar.xz" ]; then
	unpack
	command -v clang-19 >/dev/null || export TILTH_CC=$home/bin/clang-19
	exec $home/bin/lab gpu -tilth $home/bin/tilth -version "$(cat $home/version)" -cases $home/cases -limit $((limit - SECONDS))s "$@"
fi
if ! command -v go >/dev/null; then
	echo "scripts/gpu.sh: there is neither Go nor $packed: run 'scripts/gpu.sh pack' on a machine with Go and clang 19, and carry $packed here" >&2
	exit 1
fi
v=$(scripts/version.sh)
build .tools/card
exec .tools/card/lab gpu -tilth .tools/card/tilth -version "$v" -limit $((limit - SECONDS))s "$@"
