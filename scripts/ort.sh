#!/bin/bash
# Installs the version of ONNX Runtime used for comparisons into .tools/ort, unless it is there.
set -euo pipefail
cd "$(dirname "$0")/.."

version=1.30.0
if [ ! -d .tools/ort/node_modules/onnxruntime-node ]; then
	npm install --prefix .tools/ort --ignore-scripts --no-audit --no-fund --no-package-lock --loglevel=error \
		"onnxruntime-node@$version"
fi
