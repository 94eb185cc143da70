#!/bin/bash
# Runs formatting checks, linters and buf, and reports all problems, not only the first.
# usage: scripts/lint.sh            everything
#        scripts/lint.sh NAME ...   quick, main, wire, lab/deploy, lab/release or lab/docs
# quick is main with vet and staticcheck only: building and running golangci-lint takes two minutes more. The last three
# are modules of their own.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=0
step() {
	echo "== $1"
	shift
	"$@" || { failed=1; echo "failed: $*" >&2; }
}

formatted() {
	local files
	files=$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l)
	[ -z "$files" ] || { echo "not formatted (gofmt -w):" $files; return 1; }
}

# small rejects files too large to be written by hand, such as a program built in the tree.
small() {
	local files
	files=$(git ls-files -z | xargs -0 sh -c 'find "$@" -maxdepth 0 -type f -size +1024k' sh)
	[ -z "$files" ] || { echo "larger than 1 MiB:" $files; return 1; }
}

# breaking compares the wire with that of the parent commit, if any.
breaking() {
	local base
	base=$(git merge-base HEAD origin/main 2>/dev/null || true)
	if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then
		base=$(git rev-parse --verify --quiet HEAD^ || true)
	fi
	[ -n "$base" ] && git cat-file -e "$base:buf.yaml" 2>/dev/null || return 0
	local before
	before=$(mktemp -d)
	git archive "$base" buf.yaml proto | tar -x -C "$before"
	buf breaking --against "$before"
	local status=$?
	rm -rf "$before"
	return $status
}

buf() { go tool -modfile=lab/tools/go.mod buf "$@"; }

# module lints the module in a folder.
module() (
	cd "$1" && go tool -modfile="$OLDPWD/lab/tools/lint/go.mod" golangci-lint run ./...
)

# static runs staticcheck with the checks of .golangci.yml.
static() {
	local checks
	checks=$(sed -n 's/^ *checks: \[\(.*\)\]$/\1/p' .golangci.yml | tr -d ' ')
	go tool -modfile=lab/tools/lint/go.mod staticcheck -checks "$checks" ./...
}

[ $# -gt 0 ] || set -- main wire lab/deploy lab/release lab/docs
for part; do
	case "$part" in
	quick | main)
		step "file sizes" small
		step gofmt formatted
		;;&
	quick)
		step vet go vet ./...
		step staticcheck static
		;;
	main) step golangci-lint module . ;;
	wire)
		step "buf lint" buf lint
		step "buf breaking" breaking
		;;
	*) step "golangci-lint in $part" module "$part" ;;
	esac
done
exit $failed
