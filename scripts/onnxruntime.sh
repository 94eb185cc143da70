#!/bin/bash
# Builds the execution provider for ONNX Runtime as bin/libtilth_onnxruntime.so, and tests it with the runtime.
# usage: scripts/onnxruntime.sh [test]
#
# ORT_INCLUDE names the folder of ONNX Runtime's headers; without it, those of Debian's unstable distribution are used.
set -euo pipefail
cd "$(dirname "$0")/.."

to=$PWD/.tools/onnxruntime
. scripts/sid.bash

headers() {
	local apt=$to/apt options
	mkdir -p "$to"
	sid_options "$apt"
	(cd "$apt/packages" && apt-get "${options[@]}" download libonnxruntime-dev)
	for package in "$apt"/packages/*.deb; do dpkg -x "$package" "$to/root"; done
	rm -rf "$apt"
}

include=${ORT_INCLUDE:-$to/root/usr/include/onnxruntime}
[ -e "$include/onnxruntime_ep_c_api.h" ] || [ -n "${ORT_INCLUDE:-}" ] || headers
[ -e "$include/onnxruntime_ep_c_api.h" ] || {
	echo "onnxruntime.sh: $include has no onnxruntime_ep_c_api.h: ORT_INCLUDE is the folder with the headers of ONNX Runtime 1.23 or newer" >&2
	exit 1
}
flags=(-std=c++17 -O2 -Wall -Wextra -Wconversion -Werror -isystem "$include")

# ONNX Runtime only accepts semantic versions.
version=$(scripts/version.sh)
version=${version#v}
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+ ]] || version=0.0.0+${version//[^0-9A-Za-z]/-}

mkdir -p bin
${CXX:-g++} "${flags[@]}" -fPIC -shared -fvisibility=hidden -Icompiler/backend/cpu/runtime/src "-DTILTH_VERSION=\"$version\"" \
	-o bin/libtilth_onnxruntime.so onnxruntime/*.cc -ldl
[ "${1:-}" = test ] || exit 0

scripts/ort.sh
runtime=$(dirname "$(find .tools/ort -path '*linux/x64/libonnxruntime.so.1' -print -quit)")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sources=(onnxruntime/test/session.cc onnxruntime/{package,manifest,processor}.cc)
${CXX:-g++} "${flags[@]}" -Icompiler/backend/cpu/runtime/src "${sources[@]}" -o "$work/session" "$runtime/libonnxruntime.so.1" -Wl,-rpath,"$PWD/$runtime" -Wl,--allow-shlib-undefined -ldl
tilth=$PWD/bin/tilth provider=$PWD/bin/libtilth_onnxruntime.so
cd "$work"

# session MODEL PACKAGES RUNS [EXTENT...] checks that outputs equal those of the runtime's own kernels.
session() {
	local model=$1 packages=$2 runs=$3
	shift 3
	echo "== $model, $packages $*"
	./session "$provider" "$model" "$packages" "$runs" 1 "$@" >said 2>warnings || { cat warnings >&2; exit 1; }
	cat said
	awk '{ exit !($NF < 1e-5) }' said || { echo "the outputs differ" >&2; exit 1; }
}
used() { ! grep -q 'is not used' warnings || { cat warnings >&2; exit 1; }; }
unused() { grep -q "is not used: $1" warnings || { echo "want a warning with '$1':" >&2; cat warnings >&2; exit 1; }; }
shaped() { /usr/bin/python3 -c 'import onnx, sys; onnx.save(onnx.shape_inference.infer_shapes(onnx.load(sys.argv[1])), sys.argv[2])' "$1" "$2"; }

# A whole model becomes one node; the runtime's own kernels get nothing.
for model in mlp mobilenet-v2 lstm; do
	"$tilth" model "$model" -o "$model.onnx" >/dev/null
	"$tilth" compile "$model.onnx" --untuned --threads 1 -o "$model.tar" >/dev/null
	ALONE=1 COST=1 session "$model.onnx" "$model.tar" "${RUNS:-3}"
	used
done

# A model with external weights, some in files with unusual names.
mkdir beside
/usr/bin/python3 - <<-'END'
	import onnx
	from onnx.external_data_helper import set_external_data, write_external_data_tensors
	model = onnx.load("mlp.onnx")
	for i, tensor in enumerate(model.graph.initializer):
	    if tensor.HasField("raw_data") and len(tensor.raw_data) > 64:
	        set_external_data(tensor, f'a "b" & \u00e9{i % 2}.data')
	onnx.save(write_external_data_tensors(model, "beside"), "beside/model.onnx")
END
"$tilth" compile beside/model.onnx --untuned --threads 1 -o beside.tar >/dev/null
ALONE=1 session beside/model.onnx beside.tar 3
used
ALONE=1 session "$PWD/beside/model.onnx" "mlp.tar;beside.tar" 1
unused 'it was compiled from a model with the digest'
cp -r beside other
for data in other/*0.data; do printf '\x3f' | dd of="$data" bs=1 seek=3 conv=notrunc status=none; done
session other/model.onnx beside.tar 1
unused 'it was compiled from a model with other data in other/a "b" & '
for data in other/*0.data; do truncate -s +1 "$data"; done
session other/model.onnx beside.tar 1
unused 'it was compiled from a model with other data in other/a "b" & '

# A model in memory is identified by the digest from the program.
digest=$(sha256sum mlp.onnx | cut -d' ' -f1)
MEMORY=1 MODEL_SHA256=$digest ALONE=1 session mlp.onnx mlp.tar 3
used
MEMORY=1 session mlp.onnx mlp.tar 1
unused "the session's model was not loaded from a file: say which model it is by the option model_sha256"
MEMORY=1 MODEL_SHA256=${digest//[0-9]/0} session mlp.onnx mlp.tar 1
unused 'it was compiled from a model with the digest'
if MODEL_SHA256=$digest. ./session "$provider" mlp.onnx mlp.tar 1 1 2>warnings; then
	echo "what is no digest is taken for one" >&2
	exit 1
fi
grep 'give the 64 lower-case hex digits' warnings | tail -1
# That digest does not replace a file's own.
MODEL_SHA256=$digest session mobilenet-v2.onnx mlp.tar 1
unused 'it was compiled from a model with the digest'

# Two parts of a model, with a part for the runtime in between.
shaped mlp.onnx shaped.onnx
mapfile -t values < <(/usr/bin/python3 -c 'import onnx; print(*(n.output[0] for n in onnx.load("shaped.onnx").graph.node if n.op_type == "Relu"), sep="\n")')
"$tilth" compile shaped.onnx --to "${values[0]}" --untuned --threads 1 -o first.tar >/dev/null
"$tilth" compile shaped.onnx --from "${values[1]}" --untuned --threads 1 -o last.tar >/dev/null
session shaped.onnx "first.tar;last.tar" 3
used
session shaped.onnx "first.tar;first.tar" 3
unused 'another package computes some of its nodes'

# A package of another model is not used, with a message.
session mobilenet-v2.onnx mlp.tar 1
unused 'it was compiled from a model with the digest'

# The same if it has the same names, and the package of this model follows.
"$tilth" model mlp --seed 2 -o other.onnx >/dev/null
"$tilth" compile other.onnx --untuned --threads 1 -o other.tar >/dev/null
ALONE=1 session mlp.onnx "other.tar;mlp.tar" 1
unused 'it was compiled from a model with the digest'

# The same for a package for another processor.
"$tilth" compile mlp.onnx --target x86-64-v3 --untuned --threads 1 -o v3.tar >/dev/null
sed 's/"fma"/"fmx"/' v3.tar >lacking.tar
if ./session "$provider" mlp.onnx lacking.tar 1 1 2>warnings; then
	echo "a package for another processor is loaded" >&2
	exit 1
fi
grep 'it needs fmx, which this processor lacks' warnings | tail -1

# A length that varies by run.
"$tilth" model bert-tiny --open -o open.onnx >/dev/null
"$tilth" compile open.onnx --shape batch=1,sequence=1..64 --untuned --threads 1 -o open.tar >/dev/null
for n in 7 64; do
	session open.onnx open.tar 3 batch=1 sequence=$n
	used
done
if ./session "$provider" open.onnx open.tar 1 1 batch=1 sequence=65 2>warnings; then
	echo "a package for 64 tokens takes 65" >&2
	exit 1
fi
grep 'was compiled for 1 to 64' warnings | tail -1

# An invalid package ends the session with one message.
head -c 20000 mlp.tar >short.tar
for bad in short.tar missing.tar "" mlp.onnx; do
	if ./session "$provider" mlp.onnx "$bad" 1 1 2>warnings; then
		echo "a session with the package '$bad' is made" >&2
		exit 1
	fi
	grep -F -- "$bad" warnings | tail -1 || { cat warnings >&2; exit 1; }
done
