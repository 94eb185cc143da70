#!/bin/bash
# Tunes a model on emulated bare-metal boards: this machine searches and compiles, and a runner executes candidates
# under the board's monitor in QEMU. Then it compares the best records with the default schedules.
# usage: scripts/farm-bare.sh [BOARD ...], with bin/tilth built; no board means all of them
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

# tune BOARD tunes on a board whose runner is running, and compares.
tune() {
	"$tilth" tune "$work/model.onnx" --tracker "$tracker" --wait=3m --device "board=$1" --trials "${TRIALS:-12}" --json >"$work/$1.json"
	"$tilth" devices show "$1" --tracker "$tracker" --json >"$work/$1-device.json"
	compare "$1"
}

# compare BOARD compares the measurements.
compare() {
	/usr/bin/python3 - "$work" "$1" <<'PYTHON'
import json
import sys

work, board = sys.argv[1:]
with open(f"{work}/{board}.json") as file:
    tuned = json.load(file)
with open(f"{work}/{board}-device.json") as file:
    assert "qemu" in file.read()
assert tuned["state"] == "done" and tuned["dead_letters"] == 0, tuned
best = [task for task in tuned["tasks"] if task["best_s"]]
assert best, tuned
for task in best:
    assert task["untuned_s"] is None or task["best_s"] <= task["untuned_s"], task
print(f"{board}: {tuned['trials']} trials, errors {tuned['errors']}")
for task in best:
    default = "?" if task["untuned_s"] is None else f"{1e3 * task['untuned_s']:.3f}"
    print(f"  {task['task']}: {default} ms by default, {1e3 * task['best_s']:.3f} ms at best")
PYTHON
}

[ $# -gt 0 ] || set -- mps2-an500 mps3-an547 riscv32-virt
start tracker "$tilth" tracker --listen "$tracker" --http '' --data "$work/tracker"
start tuner "$tilth" tuner --tracker "$tracker"
start builder "$tilth" builder --tracker "$tracker"
"$tilth" model mlp -o "$work/model.onnx"
failed=0
for one in "$@"; do
	echo "== $one"
	start "runner-$one" "$tilth" runner --tracker "$tracker" --name "$one" --board "$one" --cache "$work/cache-$one"
	# Not on the left of ||, which would disable -e.
	set +e
	(set -e && tune "$one")
	[ $? -eq 0 ] || failed=1
	set -e
done
[ $failed -eq 0 ] || tail -n 5 "$work"/*.log >&2
exit $failed
