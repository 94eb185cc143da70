#!/bin/bash
# All that wants a machine with an NVIDIA GPU, in one run of at most nine minutes: conformance cases, checkers, the
# card's rates, tuning, and comparisons with PyTorch where python3 has it. Results are lines of
# bench/results/card/results.jsonl. What was done with this version is not done again, so that another run goes on.
#
# usage: scripts/gpu.sh [FLAGS]     what 'go run ./bench/card -help' lists, such as -only machine,product
#        scripts/gpu.sh pack        puts into .tools/gpu what a machine without Go and clang 19 needs: carry it there
set -euo pipefail
cd "$(dirname "$0")/.."

packed=.tools/gpu

build() { # FOLDER
	mkdir -p "$1"
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$1/tilth" ./cmd/tilth
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$1/card" ./bench/card
}

# A library with the symbols that LLVM has of another, which it calls for nothing that is done here.
stub() { # SONAME FOLDER PREFIX
	local llvm=/usr/lib/x86_64-linux-gnu/libLLVM.so.19.1
	objdump -T $llvm | awk -v prefix="$3" '/\*UND\*/ && $NF ~ "^" prefix {
		v = $(NF - 1); gsub(/[()]/, "", v); print (v ~ /^LIB/ ? v : "-"), $NF }' >"$2/symbols"
	awk '{ printf "void %s(void) { __builtin_trap(); }\n", $2 }' "$2/symbols" >"$2/stub.c"
	awk '$1 != "-" { names[$1] = names[$1] $2 ";" } END { for (v in names) printf "%s { global: %s };\n", v, names[v] }' \
		"$2/symbols" >"$2/versions"
	local script=()
	[ ! -s "$2/versions" ] || script=("-Wl,--version-script=$2/versions")
	clang-19 -w -shared -fPIC -fuse-ld=lld "-Wl,-soname,$1" "${script[@]}" "$2/stub.c" -o "$2/$1"
	rm "$2/symbols" "$2/stub.c" "$2/versions"
}

# The compiler with the libraries that other systems lack, without what compiles for other languages and machines: all
# of it in some 55 MB.
pack() {
	local llvm=/usr/lib/llvm-19 dir=$packed/llvm library
	rm -rf "$packed"
	mkdir -p "$dir/bin" "$dir/lib/clang/19/lib/linux"
	cp -L $llvm/bin/clang "$dir/bin/clang-19"
	cp -L $llvm/bin/lld "$dir/bin/lld"
	ln -s lld "$dir/bin/ld.lld"
	cp -r $llvm/lib/clang/19/include "$dir/lib/clang/19/"
	cp $llvm/lib/clang/19/lib/linux/libclang_rt.builtins-x86_64.a "$dir/lib/clang/19/lib/linux/"
	for library in libLLVM.so.19.1 libclang-cpp.so.19.1 libffi.so.8 libedit.so.2 libzstd.so.1 libtinfo.so.6 libbsd.so.0 libmd.so.0; do
		cp -L "$(ldconfig -p | awk -v name=$library '$1 == name { print $NF; exit }')" "$dir/lib/"
	done
	stub libz3.so.4 "$dir/lib" Z3_
	stub libxml2.so.2 "$dir/lib" xml
	tar -C "$packed" -c llvm | xz -9 -T1 >"$packed/llvm.tar.xz"
	rm -rf "$dir"
	build "$packed/bin"
	cp -r /usr/share/libonnx-testdata/data/node "$packed/cases"
	git describe --always --dirty >"$packed/version"
	tar -C "$packed" -c bin cases version | xz -9 >"$packed/tilth.tar.xz"
	rm -rf "$packed/bin" "$packed/cases" "$packed/version"
	du -sh "$packed"
}

# Unpacks all of it where the sandbox around compilers sees it.
unpack() { # FOLDER
	mkdir -p "$1"
	for part in llvm tilth; do
		tar -C "$1" -xJf "$packed/$part.tar.xz"
	done
	if ! command -v clang-19 >/dev/null; then
		echo "$1/llvm/lib" >/etc/ld.so.conf.d/tilth-gpu.conf
		ldconfig
	fi
}

if [ "${1:-}" = pack ]; then
	pack
	exit
fi
if [ -e "$packed/tilth.tar.xz" ]; then
	dir=/usr/local/lib/tilth-gpu
	[ -e $dir ] || unpack $dir
	command -v clang-19 >/dev/null || export TILTH_CC=$dir/llvm/bin/clang-19
	exec $dir/bin/card -tilth $dir/bin/tilth -version "$(cat $dir/version)" -cases $dir/cases "$@"
fi
build .tools/card
exec .tools/card/card -tilth .tools/card/tilth -version "$(git describe --always --dirty)" "$@"
