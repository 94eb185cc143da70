#!/bin/bash
# Runs ONNX's backend test cases for boards under emulators.
# usage: scripts/boards.sh [TARGET ...], with bin/tilth built; no target means all of them
set -euo pipefail
cd "$(dirname "$0")/.."

emulator() {
	case "$1" in
	riscv64) echo qemu-riscv64 -cpu rv64,v=true,vext_spec=v1.0,vlen=128 -L /usr/riscv64-linux-gnu ;;
	arm32) echo qemu-arm -cpu cortex-a7 -L /usr/arm-linux-gnueabihf ;;
	arm64) echo qemu-aarch64 -L /usr/aarch64-linux-gnu ;;
	neoverse-v1) echo qemu-aarch64 -cpu max,sve256=on,sve512=off -L /usr/aarch64-linux-gnu ;;
	a64fx) echo qemu-aarch64 -cpu a64fx -L /usr/aarch64-linux-gnu ;;
	*)
		echo "boards.sh: no such board: $1 (want riscv64, arm32, arm64, neoverse-v1 or a64fx)" >&2
		return 2
		;;
	esac
}

[ $# -gt 0 ] || set -- riscv64 arm32 arm64 neoverse-v1 a64fx
failed=0
for board in "$@"; do
	command=$(emulator "$board")
	echo "== $board"
	bin/tilth check --target "$board" --threads 1 --emulator "$command" /usr/share/libonnx-testdata/data/node | sed -E '/^(pass|unsupported) /d' || failed=1
done
exit $failed
