#!/bin/bash
# Tunes a model on emulated boards: this machine searches and compiles, and a runner for each board measures under QEMU.
# Then it compiles the model with the records, runs the package under QEMU, and compares the outputs with those of this
# machine.
# usage: scripts/farm-boards.sh [TARGET ...], with bin/tilth built; no target means all of them
set -euo pipefail
cd "$(dirname "$0")/.."

tilth=$PWD/bin/tilth
work=$(mktemp -d)
processes=()
# shellcheck disable=SC2317 # at the end
cleanup() {
	[ ${#processes[@]} -eq 0 ] || kill "${processes[@]}" 2>/dev/null || true
	wait
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
export XDG_CACHE_HOME=$work/cache XDG_DATA_HOME=$work/data
tracker=unix:$work/sock

# start NAME COMMAND... starts a service that logs to a file with its name.
start() {
	"${@:2}" 2>"$work/$1.log" &
	processes+=($!)
}

# board TARGET sets Go's name of its processor, and its emulator, with and without libraries.
board() {
	case "$1" in
	riscv64) goarch=riscv64 machine="qemu-riscv64 -cpu rv64,v=true,vext_spec=v1.0,vlen=128" libraries=/usr/riscv64-linux-gnu ;;
	arm32) goarch=arm machine="qemu-arm -cpu cortex-a7" libraries=/usr/arm-linux-gnueabihf ;;
	arm64) goarch=arm64 machine=qemu-aarch64 libraries=/usr/aarch64-linux-gnu ;;
	neoverse-v1) goarch=arm64 machine="qemu-aarch64 -cpu max,sve256=on,sve512=off" libraries=/usr/aarch64-linux-gnu ;;
	*)
		echo "farm-boards.sh: no such board: $1 (want riscv64, arm32, arm64 or neoverse-v1)" >&2
		return 2
		;;
	esac
}

# tune TARGET tunes for a board, and compares.
tune() {
	board "$1"
	local emulator="$machine -L $libraries" words
	read -ra words <<<"$machine"
	GOARCH=$goarch GOARM=7 CGO_ENABLED=0 go build -tags static -o "$work/tilth-$1" ./cmd/tilth
	start "runner-$1" "${words[@]}" "$work/tilth-$1" runner --tracker "$tracker" --name "$1" --label "board=$1" --target "$1" \
		--threads 1 --emulator "$emulator" --sandbox off --cache "$work/cache-$1"
	"$tilth" tune "$work/model.onnx" --tracker "$tracker" --wait=3m --device "board=$1" --threads 1 --trials "${TRIALS:-24}" --json >"$work/$1.json"
	"$tilth" devices show "$1" --tracker "$tracker" --json >"$work/$1-device.json"
	"$tilth" compile "$work/model.onnx" --target "$1" --threads 1 --tracker "$tracker" --json -o "$work/$1.tar" >"$work/$1-compiled.json"
	"$tilth" run "$work/$1.tar" --emulator "$emulator" --outputs "$work/$1.npz"
	compare "$1"
}

# compare TARGET compares the measurements and checks the package's outputs.
compare() {
	/usr/bin/python3 - "$work" "$1" <<'EOF'
import json
import sys

import numpy

work, board = sys.argv[1:]


def read(name):
    with open(f"{work}/{board}{name}.json") as file:
        return json.load(file)


tuned, compiled, device = read(""), read("-compiled"), read("-device")
here, there = numpy.load(f"{work}/here.npz"), numpy.load(f"{work}/{board}.npz")
assert tuned["state"] == "done" and not tuned["errors"] and tuned["dead_letters"] == 0, tuned
assert compiled["tuned"] > 0, compiled
assert "qemu" in json.dumps(device), device
assert sorted(here) == sorted(there)
worst = max(numpy.max(numpy.abs(here[n] - there[n]) / (1e-4 + numpy.abs(here[n]))) for n in here)
print(f"{board}: {tuned['trials']} trials, {compiled['tuned']} of {compiled['tasks']} tasks tuned, worst relative error {worst:.1e}")
assert worst < 1e-3, worst
EOF
}

[ $# -gt 0 ] || set -- riscv64 arm32 arm64 neoverse-v1
start tracker "$tilth" tracker --listen "$tracker" --http '' --data "$work/tracker"
start tuner "$tilth" tuner --tracker "$tracker"
start builder "$tilth" builder --tracker "$tracker"
"$tilth" model mlp -o "$work/model.onnx"
"$tilth" compile "$work/model.onnx" --untuned --threads 1 -o "$work/here.tar" >/dev/null
"$tilth" run "$work/here.tar" --outputs "$work/here.npz"
failed=0
for one in "$@"; do
	echo "== $one"
	# Not on the left of ||, which would disable -e.
	set +e
	(set -e && tune "$one")
	[ $? -eq 0 ] || failed=1
	set -e
done
[ $failed -eq 0 ] || tail -n 5 "$work"/*.log >&2
exit $failed
