#!/bin/bash
# Runs `go test` with the given arguments and prints the ten slowest packages.
set -uo pipefail
cd "$(dirname "$0")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT
# One package more than there are processors, because some tests mostly wait for other processes. The longest packages
# start first so that none of them runs last and alone.
longest=(./cmd/tilth ./tracker ./records/postgres ./runner ./compiler/backend/cpu/codegen ./compiler/aot)
[[ " $* " == *" ./... "* ]] || longest=()
"${GO:-go}" test -p $(($(nproc) + 1)) "$@" "${longest[@]}" 2>&1 | tee "$log" | grep --line-buffered -v '\[no test files\]$'
status=${PIPESTATUS[0]}
echo
echo "slowest packages:"
awk '($1 == "ok" || $1 == "FAIL") && $3 ~ /^[0-9.]+s$/ { print $3, $2 }' "$log" | sort -rn | head -10 |
	awk '{ printf "%9s  %s\n", $1, $2 }'
exit "$status"
