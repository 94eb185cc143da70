#!/bin/bash
# Prints the packages in which nothing runs side by side: rooms of the compiler that neither start goroutines nor guard
# anything against them. Their tests have nothing for the race detector to find, and take a third of the time without
# it. What others run side by side of them is run so by the tests of those others.
set -euo pipefail
cd "$(dirname "$0")/.."

go list -f '{{$dir := .Dir}}{{.ImportPath}}{{range .GoFiles}} {{$dir}}/{{.}}{{end}}' ./compiler/... ./lab/bench/operators/... |
	while read -r package files; do
		# shellcheck disable=SC2086 # names of files have no spaces
		if ! grep -qE '(^|[^a-zA-Z])go (func|[a-zA-Z_.]+\()|\.Go\(|"sync(/atomic)?"' $files /dev/null; then
			echo "$package"
		fi
	done
