#!/bin/bash
# Tunes ResNet-18 on this machine for about two minutes, compiles it and runs it.
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

say "tuning for $budget (then each task untuned and tuned, and the model as a whole, in turns)"
$tilth tune "$model" --time "$budget" --records "$records" --log "$dir/trials.jsonl" --plot "$dir/curve.svg"

say "compiling"
$tilth compile "$model" --records "$records" -o "$dir/resnet-18.tar"

say "running the package once, then timing it"
$tilth run "$dir/resnet-18.tar" --outputs "$dir/outputs.npz" --print-time

say "where things are"
echo "records: $records"
echo "package: $dir/resnet-18.tar"
echo "outputs: $dir/outputs.npz"
echo "trials:  $dir/trials.jsonl"
echo "curve:   $dir/curve.svg"
