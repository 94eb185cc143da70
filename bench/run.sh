#!/bin/bash
# Tunes models on this machine, and compares them with ONNX Runtime in interleaved runs.
#
# usage: bench/run.sh [MODEL[:INPUTS.npz] ...]
#   MODEL is a name that 'tilth model' knows, or an .onnx file (default resnet-18)
#   BENCH_TIME     tuning time per model and number of threads (default 5m)
#   BENCH_THREADS  numbers of threads (default "1 2")
# Records are kept in .tools/bench, so that another run goes on where this one ended.
set -euo pipefail
cd "$(dirname "$0")/.."

ort_version=1.30.0
budget=${BENCH_TIME:-5m}
read -ra threads <<<"${BENCH_THREADS:-1 2}"
models=("$@")
[ ${#models[@]} -gt 0 ] || models=(resnet-18)
work=.tools/bench
mkdir -p "$work"

if [ ! -d .tools/ort/node_modules/onnxruntime-node ]; then
	npm install --prefix .tools/ort --ignore-scripts --no-audit --no-fund --no-package-lock --loglevel=error \
		"onnxruntime-node@$ort_version"
fi
go build -o "$work/bench" ./bench

for entry in "${models[@]}"; do
	model=${entry%%:*}
	inputs=()
	[ "$entry" = "$model" ] || inputs=(-inputs "${entry#*:}")
	if [[ $model != *.onnx ]]; then
		[ -e "$work/$model.onnx" ] || bin/tilth model "$model" -o "$work/$model.onnx"
		model=$work/$model.onnx
	fi
	for n in "${threads[@]}"; do
		name=$work/$(basename "$model" .onnx)-$n
		printf '\n== %s, %s threads: tuning for %s\n' "$model" "$n" "$budget"
		bin/tilth tune "$model" --threads "$n" --time "$budget" --records "$work/tilth.db" --log "$name.jsonl"
		bin/tilth compile "$model" --threads "$n" --untuned -o "$name-untuned.tar"
		bin/tilth compile "$model" --threads "$n" --records "$work/tilth.db" -o "$name.tar"
		"$work/bench" -model "$model" "${inputs[@]}" -threads "$n" "$name-untuned.tar" "$name.tar"
		"$work/bench" -log "$name.jsonl"
	done
done
