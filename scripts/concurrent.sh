#!/bin/bash
# Prints the packages with concurrency of their own, which are tested under the race detector.
set -euo pipefail
cd "$(dirname "$0")/.."
go list -f '{{.Dir}} {{.ImportPath}}' ./tracker/... ./records/... ./tuner/... ./runner/... ./builder ./client ./internal/... |
	while read -r folder package; do
		! grep -qE '^\s*go |"sync(/atomic)?"' "$folder"/*.go || echo "$package"
	done
