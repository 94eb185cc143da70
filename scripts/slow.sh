#!/bin/bash
# Runs proofs of the slow tier.
# usage: scripts/slow.sh all           everything, for hours
#        scripts/slow.sh NAME ...      proofs by name
#        scripts/slow.sh draw [REV]    the proofs of the paths that HEAD changes since REV (default: its parent), and one
#                                      more of a few minutes, chosen by HEAD's hash; LIMIT=20 bounds the minutes
#        scripts/slow.sh list          the table
set -euo pipefail
cd "$(dirname "$0")/.."

# name; minutes on two cores; paths that it concerns (extended regular expression); command
proofs() {
	cat <<-'TABLE'
		conformance;4;^compiler/(backend/(gpu|gpusim|opencl)|op|frontend|onnx|lower|pass|conformance)/;make conformance OPENCL=32 SEED=$seed
		fuzz-kernels;3;^compiler/(backend/(gpu|gpusim)|pass|lower|schedule)/;make fuzz-kernels PAIRS=144 SEED=$seed
		python;2;^(python|proto|scripts/python);make check-python
		lint;4;^(\.golangci|lab/(deploy|docs|release|tools/lint)/);scripts/lint.sh main lab/deploy lab/release lab/docs
		wire;4;^(proto/|buf|lab/tools/go);scripts/lint.sh wire
		deploy;4;^(deploy|lab/deploy|docker-compose);make test-deploy
		dist;2;^(lab/release|deploy/install|scripts/dist);(cd lab/release && go test ./...)
		docs;1;^(docs|lab/docs|README|CONTRIBUTING|CHANGELOG);(cd lab/docs && go test ./...) && make docs
		arm;2;^(compiler/target|internal/sandbox)/;GOARCH=arm GOARM=7 CGO_ENABLED=0 go vet ./...
		tutorials;10;^docs/tutorials/;make tutorials
		bare;15;^compiler/(backend/board|boardmonitor)/;make test-bare
		conformance-boards;60;^compiler/target/;make conformance-boards
		farm-boards;20;^scripts/farm-boards;make farm-boards
		farm-bare;10;^(runner/boards/|scripts/farm-bare);make farm-bare
		fuzz-boards;10;^compiler/backend/board/;make fuzz-boards
		fuzz-graphs;30;^lab/graphfuzz/;make fuzz-graphs
		chaos;60;^lab/chaos/;make chaos ROUNDS=20 SHARDED=20 REAL=2 FARMS=4 SEED=$seed
		mutate;90;^lab/mutation/;make mutate
		service;30;^(deploy/install-runner|scripts/(test-service|service-image));make test-service
		dist-check;20;^lab/release/;make dist-check
		fresh;15;^(scripts/(packages|fresh)\.sh|Makefile|lab/tools/);make fresh
	TABLE
	# Every package with tests that -short leaves out. The largest take many minutes.
	git grep -lE 'testing\.Short\(\)|\[short\]' -- '*_test.go' '*.txtar' '*.txt' | sed -E 's#/testdata/.*#/x#; s#/[^/]*$##' | sort -u |
		grep -vE '^lab/(deploy|release|docs)(/|$)' | while read -r folder; do
		case "$folder" in
		cmd/tilth | tracker | records/postgres | runner | compiler/backend/cpu/codegen | compiler/aot | lab/chaos) minutes=20 ;;
		*) minutes=4 ;;
		esac
		changed="^$folder/[^/]*\$"
		[ "$folder" != records ] || changed='^records/' # it tests every store
		[ "$folder" != compiler/conformance ] || changed='^compiler/' # it tests the whole compiler on each target
		echo "$folder;$minutes;$changed;go test -vet=off -timeout 90m ./$folder"
	done
}

seed=${SEED:-$((16#$(git rev-parse --short=8 HEAD | head -c 8)))}
run() { # NAME COMMAND
	printf '\n== %s (seed %s)\n' "$1" "$seed"
	eval "$2"
}

case "${1:?usage: scripts/slow.sh all|list|draw [REV]|NAME ...}" in
list) proofs | awk -F';' '{ printf "%-40s %3s min  %s\n", $1, $2, $4 }' ;;
all)
	failed=()
	while IFS=';' read -r name _ _ command <&3; do
		run "$name" "$command" || failed+=("$name")
	done 3< <(proofs)
	[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}" >&2; exit 1; }
	;;
draw)
	changed=$(git diff --name-only "${2:-HEAD^}" HEAD)
	short=$(proofs | awk -F';' '$2 <= 4' | wc -l)
	drawn=$((seed % short)) k=0 left=${LIMIT:-20}
	while IFS=';' read -r name minutes paths command <&3; do
		wanted=false
		if [ "$minutes" -le 4 ]; then
			[ "$k" -eq "$drawn" ] && wanted=true
			k=$((k + 1))
		fi
		$wanted || ! grep -qE "$paths" <<<"$changed" || wanted=true
		$wanted || continue
		if [ "$minutes" -gt "$left" ]; then
			echo "left to 'make test-all ONLY=$name': its $minutes minutes are more than the $left that are left"
			continue
		fi
		left=$((left - minutes))
		run "$name" "$command"
	done 3< <(proofs)
	;;
*)
	for name in "$@"; do
		command=$(proofs | awk -F';' -v name="$name" '$1 == name { print $4 }')
		[ -n "$command" ] || { echo "slow.sh: no such proof: $name (scripts/slow.sh list)" >&2; exit 2; }
		run "$name" "$command"
	done
	;;
esac
