#!/bin/bash
# Prints the packages without concurrency: compiler packages that neither start goroutines nor synchronise. The race
# detector cannot find anything in their tests and triples their time. The tests of packages that call them
# concurrently cover such use.
set -euo pipefail
cd "$(dirname "$0")/.."

go list -f '{{$dir := .Dir}}{{.ImportPath}}{{range .GoFiles}} {{$dir}}/{{.}}{{end}}' ./compiler/... ./lab/bench/operators/... |
	while read -r package files; do
		# shellcheck disable=SC2086 # names of files have no spaces
		if ! grep -qE '(^|[^a-zA-Z])go (func|[a-zA-Z_.]+\()|\.Go\(|"sync(/atomic)?"' $files /dev/null; then
			echo "$package"
		fi
	done
