#!/bin/bash
# Takes the screenshots of docs/page.md: a job that tunes ResNet-18 on this machine, and a farm of 2,400 simulated
# devices. It needs chromium, curl, pngquant and bin/tilth.
# usage: scripts/screenshots.sh [SECONDS of tuning]
set -euo pipefail
cd "$(dirname "$0")/.."
budget=${1:-90}
tilth=$PWD/bin/tilth
dir=$(mktemp -d)
running=()
finish() {
	kill "${running[@]}" 2>/dev/null || true
	wait
	rm -rf "$dir"
}
trap finish EXIT

# shoot URL NAME HEIGHT
shoot() {
	chromium --headless --no-sandbox --hide-scrollbars --user-data-dir="$dir/browser" --window-size="1280,$3" \
		--screenshot="docs/$2.png" "$1" 2>/dev/null
	pngquant --force --ext .png 64 "docs/$2.png"
}
await() { for _ in $(seq 600); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done; echo "screenshots.sh: waited in vain for: $*" >&2; exit 1; }

rpc=127.0.0.1:19190 web=http://127.0.0.1:19191
"$tilth" tracker --data "$dir/data" --listen "$rpc" --http "${web#http://}" 2>"$dir/tracker.log" & running+=($!)
await curl -sf "$web/readyz"
for agent in tuner builder runner; do
	"$tilth" "$agent" --tracker "$rpc" 2>"$dir/$agent.log" & running+=($!)
done
"$tilth" model resnet-18 -o "$dir/resnet18.onnx"
"$tilth" tune "$dir/resnet18.onnx" --tracker "$rpc" --wait --time "${budget}s" >/dev/null 2>"$dir/tune.log"
job=$(curl -sf "$web/api/v1/jobs?pageSize=1" | sed -n 's/.*"id":"\(job-[^"]*\)".*/\1/p')
shoot "$web/jobs/$job" page-job 1150
kill "${running[@]}"
wait
running=()

go build -o "$dir/lab" ./lab
"$dir/lab" simulate --http "${web#http://}" --devices 2400 --jobs 40 --time 90s --rate 1000 --mean-life 5m --crashes 0.02 \
	>/dev/null 2>&1 & running+=($!)
await curl -sf "$web/readyz"
sleep 40 # devices join, and work spreads
shoot "$web/" page-overview 700
