#!/bin/bash
# Records the animation of README.md: a search on this machine, in a terminal, without earlier records. It needs
# bin/tilth and Debian's termtosvg.
# usage: scripts/animation.sh [SECONDS of tuning]
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
# The animation shows the path of the records, so the folder has a neutral name.
dir=/tmp/home
mkdir "$dir" || { echo "animation.sh: $dir is there already: remove it" >&2; exit 1; }
trap 'rm -rf "$dir"' EXIT

export HOME=$dir XDG_DATA_HOME=$dir/.local/share XDG_CACHE_HOME=$dir/.cache PATH=$root/bin:$PATH
cd "$dir"
tilth model resnet-18 -o resnet18.onnx
termtosvg "$root/docs/tune.svg" -g 120x27 -m 100 -M 1000 -t gjm8_single_loop -c "tilth tune resnet18.onnx --time ${1:-120}s"
ls -l "$root/docs/tune.svg"
