#!/bin/bash
# Runs `go test` with the given arguments and prints the ten slowest packages.
set -uo pipefail
cd "$(dirname "$0")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT
# go test starts packages in the order of its arguments. The longest come first, so that none of them runs last and alone.
longest='/(tracker|cmd/tilth|records/postgres|records|runner|compiler/aot|records/bolt|tuner|runner/packagerun|tuner/bestschedule)$'
flags=() patterns=()
for argument in "$@"; do
	case "$argument" in
	-race)
		# By default, each process under the race detector sleeps for a second before it exits.
		export CGO_ENABLED=1 GORACE="atexit_sleep_ms=50 ${GORACE:-}"
		flags+=("$argument")
		;;
	./* | */*/*) patterns+=("$argument") ;;
	*) flags+=("$argument") ;;
	esac
done
listed=$("${GO:-go}" list "${patterns[@]}") || exit
mapfile -t packages < <(grep -E "$longest" <<<"$listed"; grep -vE "$longest" <<<"$listed")
# Two packages more than there are processors, because some tests mostly wait for other processes.
"${GO:-go}" test -p $(($(nproc) + 2)) "${flags[@]}" "${packages[@]}" 2>&1 | tee "$log" | grep --line-buffered -v '\[no test files\]$'
status=${PIPESTATUS[0]}
echo
echo "slowest packages:"
awk '($1 == "ok" || $1 == "FAIL") && $3 ~ /^[0-9.]+s$/ { print $3, $2 }' "$log" | sort -rn | head -10 |
	awk '{ printf "%9s  %s\n", $1, $2 }'
exit "$status"
