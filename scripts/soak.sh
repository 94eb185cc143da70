#!/bin/bash
# Runs all tests again and again beside two busy loops, and prints which packages failed in which run.
# usage: scripts/soak.sh RUNS [FLAGS OF GO TEST] [PACKAGES]; the output of run K is in .tools/soak/K.log
set -uo pipefail
cd "$(dirname "$0")/.." || exit

runs=${1:?usage: scripts/soak.sh RUNS [FLAGS] [PACKAGES]}
shift
[ $# -gt 0 ] || set -- -short -vet=off -timeout 45m ./...
mkdir -p .tools/soak
loops=()
trap 'kill "${loops[@]}"' EXIT
for _ in 1 2; do
	while :; do :; done &
	loops+=($!)
done
failed=0
for ((k = 1; k <= runs; k++)); do
	start=$SECONDS
	if scripts/test.sh -count=1 "$@" >".tools/soak/$k.log" 2>&1; then
		echo "run $k of $runs passed in $((SECONDS - start)) s"
	else
		failed=$((failed + 1))
		echo "run $k of $runs failed: $(awk '$1 == "FAIL" && $2 ~ /\// { print $2 }' ".tools/soak/$k.log" | sort -u | xargs)"
	fi
done
[ "$failed" -eq 0 ]
