#!/bin/bash
# Runs ONNX's backend test cases on the simulated GPU, and a random sample on an OpenCL device.
# Support of operators does not depend on the target, so a case that passes on a processor must pass here.
# usage: scripts/conformance.sh OPENCL-SHARE SEED, with bin/tilth built
set -euo pipefail
cd "$(dirname "$0")/.."
share=$1 seed=$2

all=(/usr/share/libonnx-testdata/data/node/*/)
some=()
for ((k = seed % share; k < ${#all[@]}; k += share)); do some+=("${all[k]}"); done

# A driver may cache kernels; results of an earlier run must not count.
POCL_CACHE_DIR=$(mktemp -d)
export POCL_CACHE_DIR
trap 'rm -rf "$POCL_CACHE_DIR"' EXIT

# check prints the failures and the summary.
check() {
	local target=$1
	shift
	echo "== $target"
	bin/tilth check --target "$target" "$@" | sed -E '/^(pass|unsupported) /d'
}
check gpu-sim "${all[@]}"
check opencl "${some[@]}"
