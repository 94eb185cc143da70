#!/bin/bash
# Prints the version that measured results are of: the newest commit of what is measured, and a digest of changes that
# were not committed. What lies in lab/bench/results or docs changes no version.
set -euo pipefail
cd "$(dirname "$0")/.."

measured=(. ':!lab/bench/results' ':!docs' ':!*.md')
if ! git rev-parse -q --verify HEAD >/dev/null; then
	echo "scripts/version.sh: a version is a commit of git, and there is none here" >&2
	exit 1
fi
git log -1 --format=%h -- "${measured[@]}" | tr -d '\n'
if ! git diff --quiet HEAD -- "${measured[@]}"; then
	git diff HEAD -- "${measured[@]}" | sha256sum | cut -c1-8 | sed 's/^/+/' | tr -d '\n'
fi
echo
