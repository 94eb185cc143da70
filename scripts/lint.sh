#!/bin/bash
# Runs formatting checks, vet, golangci-lint and buf, and reports all problems, not only the first.
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
	go tool -modfile=lab/tools/go.mod buf breaking --against "$before"
	local status=$?
	rm -rf "$before"
	return $status
}

# deployment runs a command in the module that checks deploy/, releases in the one that makes releases, documents in
# that of the documentation; in a shell of its own, since it changes the folder.
deployment() (
	cd lab/deploy && "$@"
)
releases() (
	cd lab/release && "$@"
)
documents() (
	cd lab/docs && "$@"
)

step 'file sizes' small
step gofmt formatted
step "buf lint" go tool -modfile=lab/tools/go.mod buf lint
step "buf breaking" breaking
step golangci-lint go tool -modfile=lab/tools/lint/go.mod golangci-lint run ./...
step "golangci-lint, deployment" deployment go tool -modfile=../tools/lint/go.mod golangci-lint run ./...
step "golangci-lint, releases" releases go tool -modfile=../tools/lint/go.mod golangci-lint run ./...
step "golangci-lint, documentation" documents go tool -modfile=../tools/lint/go.mod golangci-lint run ./...
exit $failed
