#!/bin/bash
# Tunes ResNet-18 on this machine for about two minutes, compiles it untuned and tuned, runs the tuned
# package, and compares both.
set -euo pipefail
cd "$(dirname "$0")/.."
unset TILTH_TRACKER # all of it is on this machine

tilth=bin/tilth
dir=${DEMO_DIR:-demo}
budget=${DEMO_TIME:-2m}
mkdir -p "$dir"
model=$dir/resnet-18.onnx
records=$dir/tilth.db

say() { printf '\n== %s\n' "$*"; }

say "the model"
[ -e "$model" ] || $tilth model resnet-18 -o "$model"

say "tuning for $budget (then each task untuned and tuned, trials, errors by class)"
$tilth tune "$model" --time "$budget" --records "$records" --log "$dir/trials.jsonl" --plot "$dir/curve.svg"

say "compiling, untuned and tuned"
$tilth compile "$model" --untuned -o "$dir/untuned.tar"
$tilth compile "$model" --records "$records" -o "$dir/resnet-18.tar"

say "running the tuned package once, then timing it"
$tilth run "$dir/resnet-18.tar" --outputs "$dir/outputs.npz" --print-time

say "the model as a whole, untuned and tuned in turns"
$tilth compare "$dir/untuned.tar" "$dir/resnet-18.tar"

say "where things are"
echo "records: $records"
echo "package: $dir/resnet-18.tar"
echo "outputs: $dir/outputs.npz"
echo "trials:  $dir/trials.jsonl"
echo "curve:   $dir/curve.svg"
