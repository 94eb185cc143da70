#!/bin/bash
# Prints the packages with concurrency of their own, which are tested under the race detector.
set -euo pipefail
cd "$(dirname "$0")/.."
go list ./tracker/... ./records/... ./tuner/... ./runner/... ./builder ./client ./internal/...
