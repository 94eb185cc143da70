#!/bin/bash
# Records the animation of README.md: a search on this machine, in a terminal, without earlier records. It needs
# bin/tilth.
# usage: scripts/film.sh [SECONDS of tuning]
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
# The animation shows the path of the records, so the folder has a neutral name.
dir=/tmp/home
mkdir "$dir" || { echo "film.sh: $dir is there already: remove it" >&2; exit 1; }
trap 'rm -rf "$dir"' EXIT

(cd lab/docs && go build -o "$dir/docs" .)
export HOME=$dir XDG_DATA_HOME=$dir/.local/share XDG_CACHE_HOME=$dir/.cache PATH=$root/bin:$PATH
cd "$dir"
tilth model resnet-18 -o resnet18.onnx
./docs film -o "$root/docs/tune.svg" -columns 120 -lines 27 tilth tune resnet18.onnx --time "${1:-120}s"
ls -l "$root/docs/tune.svg"
