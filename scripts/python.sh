#!/bin/bash
# Tests the Python package with Debian's Python, because others in PATH may lack numpy. It needs bin/tilth.
# usage: scripts/python.sh [style|torch]
set -euo pipefail
cd "$(dirname "$0")/../python"

python=${PYTHON:-/usr/bin/python3}
unset PYTHONPATH PYTHONHOME # of another Python
export PYTHONDONTWRITEBYTECODE=1 TILTH="$PWD/../bin/tilth"

case ${1:-} in
'')
	exec "$python" -m unittest discover -b -t . -s tests
	;;
style)
	"$python" -m black --check -q . || { echo "not formatted: run 'black python'" >&2; exit 1; }
	"$python" -m flake8 .
	exec "$python" -m mypy
	;;
torch)
	exec "$python" -m unittest -v tests.torch_models
	;;
*)
	echo "scripts/python.sh: no such set of tests: $1 (want style, torch or nothing)" >&2
	exit 2
	;;
esac
