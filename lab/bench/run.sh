#!/bin/bash
# Compares models on this machine with ONNX Runtime in interleaved runs, and prints a table in Markdown.
#
# usage: lab/bench/run.sh [decoding|fast|quantised] [FLAGS] [MODEL[:INPUTS.npz] ...]
#   decoding          one token of decoders, with weights of 32, 16, 8 and 4 bits, without tuning
#   fast              packages with fast numerics, beside default numerics, without tuning
#   quantised         8-bit models, beside their float twins, without tuning
#   MODEL             a name that 'tilth model' knows, or an .onnx file; default: all built-in models
#   --untuned         default schedules only, without tuning
#   --again           repeat comparisons made with this version of the tree
#   --time 5m         tuning time of a model for each number of threads (also BENCH_TIME)
#   --threads 1,2     numbers of threads (also BENCH_THREADS)
#   --seconds 10      how long contenders take turns, for each model and number of threads
# Results are saved in lab/bench/results, in a folder for each kind of machine, and another run resumes them. Models,
# records and packages are in .tools/bench. BENCH_MODELS is an alternative to MODEL arguments.
set -euo pipefail
cd "$(dirname "$0")/../.."

work=.tools/bench
mkdir -p "$work"
scripts/ort.sh
scripts/peers.sh
go build -o "$work/lab" ./lab
read -ra models <<<"${BENCH_MODELS:-}"
form=()
case ${1:-} in
  decoding | fast | quantised)
    form=("$1")
    shift
    ;;
esac
exec "$work/lab" models "${form[@]}" -version "$(scripts/version.sh)" -time "${BENCH_TIME:-5m}" -threads "${BENCH_THREADS:-1,2}" "$@" "${models[@]}"
