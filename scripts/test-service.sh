#!/bin/bash
# Tests deploy/install-runner.sh: a Debian with systemd boots under QEMU, where a runner of a release is installed,
# updated, cut off from its tracker, rebooted and removed, while a farm on this machine tunes.
# usage: scripts/test-service.sh; as root. It tests the last commit
set -euo pipefail
cd "$(dirname "$0")/.."

machine=$PWD/.tools/service
scripts/service-image.sh "$machine"
work=$(mktemp -d)
processes=()
# shellcheck disable=SC2317 # at the end
cleanup() {
	local status=$?
	[ $status -eq 0 ] || { echo "== failed; the logs" && tail -n 15 "$work"/*.log; } >&2
	[ ${#processes[@]} -eq 0 ] || kill "${processes[@]}" 2>/dev/null || true
	wait
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

say() { echo "== $* (at $SECONDS s)"; }
fail() {
	echo "test-service.sh: $*" >&2
	exit 1
}

# start NAME COMMAND... starts a process that logs to a file with its name and sets $started to its id.
start() {
	"${@:2}" >>"$work/$1.log" 2>&1 &
	started=$!
	processes+=("$started")
}

# await SECONDS WHAT COMMAND... waits until the command succeeds.
await() {
	local end=$((SECONDS + $1))
	until "${@:3}"; do
		[ $SECONDS -lt $end ] || fail "not within $1 s: $2"
		sleep 2
	done
}

free_port() { /usr/bin/python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# board COMMAND runs a command on the board as root.
board() {
	ssh -q -i "$machine/id" -p "$ssh_port" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ConnectTimeout=10 \
		-o ControlMaster=auto -o ControlPath="$work/ssh" -o ControlPersist=1m root@127.0.0.1 "$@"
}

# boot starts the board. Its disk starts as the image; changes are lost with the process.
boot() {
	local accelerator=(-accel "tcg,thread=multi" -cpu max)
	! grep -qwE 'vmx|svm' /proc/cpuinfo || [ ! -w /dev/kvm ] || accelerator=(-accel kvm -cpu host)
	start board qemu-system-x86_64 -machine q35 "${accelerator[@]}" -smp 2 -m 1024 -display none -monitor none -serial stdio \
		-kernel "$machine/kernel" -initrd "$machine/initrd" -append "root=/dev/vda rw console=ttyS0 net.ifnames=0" \
		-drive "file=$machine/board.img,if=virtio,format=raw,snapshot=on" -nic "user,model=virtio,hostfwd=tcp:127.0.0.1:$ssh_port-:22"
	await 600 "the board boots" board true
}

# make_releases makes two releases of the last commit, the second with a newer version, and one that was changed after
# it was signed.
make_releases() {
	minisign -G -W -p "$work/tilth.pub" -s "$work/secret key" >/dev/null
	git clone -q --no-tags . "$work/source"
	local git=(git -C "$work/source" -c user.name=test -c user.email=test@localhost)
	"${git[@]}" tag v0.0.1
	for release in first second; do
		"${git[@]}" commit -q --allow-empty -m "$release"
		make -s -C "$work/source" dist ARCH=amd64 KEY="$work/secret key" >"$work/dist.log" 2>&1
		mv "$work/source/dist" "$work/$release"
	done
	cp -r "$work/second" "$work/changed"
	echo >>"$work/changed/SHA256SUMS"
	first=$(version first) second=$(version second)
}

version() { (cd "$work/$1" && echo tilth-*-linux-amd64.deb | sed 's/^tilth-\(.*\)-linux-amd64.deb$/\1/'); }

# offer RELEASE: has the tracker offer a release.
offer() {
	ln -sfn "$work/$1" "$work/offered.new"
	mv -T "$work/offered.new" "$work/offered"
}

start_tracker() {
	start tracker "$tilth" tracker --listen "127.0.0.1:$port" --http '' --data "$work/tracker" --tls-cert "$work/certs/tracker.crt" \
		--tls-key "$work/certs/tracker.key" --tokens "$work/tokens.json" --releases "$work/offered"
	tracker=$started
}

# start_farm starts all but the runner. The board sees this machine as 10.0.2.2.
start_farm() {
	port=$(free_port)
	export TILTH_TRACKER=127.0.0.1:$port TILTH_TLS_CA=$work/certs/ca.crt TILTH_TOKEN_FILE=$work/admin.token
	"$tilth" tracker certs --dir "$work/certs" --host 10.0.2.2
	for role in admin agent; do
		"$tilth" tracker token create "$role" --role "$role" --tokens "$work/tokens.json" -o "$work/$role.token"
	done
	offer first
	start_tracker
	start tuner env TILTH_TOKEN_FILE="$work/agent.token" "$tilth" tuner --cache "$work/cache"
	start builder env TILTH_TOKEN_FILE="$work/agent.token" "$tilth" builder --cache "$work/cache"
	"$tilth" model mlp -o "$work/mlp.onnx"
}

# device FILTER: what jq finds in what the farm says of the board; fails where that is false or nothing.
device() { "$tilth" devices list --json 2>/dev/null | jq -re "first(.[] | select(.device == \"board\")) | $1"; }

present() { device '.state == "idle" or .state == "busy"' >/dev/null; }
absent() { ! present; }
runs() { [ "$(device .version)" = "$1" ]; }
seen_after() { [[ "$(device .seen_at)" > "$1" ]]; }
joined_after() { [[ "$(device .joined_at)" > "$1" ]]; }

# measure: the board measures candidates that it has not measured yet.
measure() {
	seed=$((${seed:-0} + 1))
	"$tilth" tune "$work/mlp.onnx" --device board --wait=5m --trials 4 --no-transfer --seed $seed --json >"$work/tuned.json" 2>"$work/tune.log"
	jq -e '.state == "done" and .trials == 4 and ([.tasks[].best_s // empty] | length) > 0' "$work/tuned.json" >/dev/null ||
		fail "the board measured: $(jq -c '{state, reason, trials, errors}' "$work/tuned.json")"
	echo "$(jq '[.tasks[].best_s // empty] | length' "$work/tuned.json") tasks measured, the best took $(jq '[.tasks[].best_s // empty] | min' "$work/tuned.json") s"
}

runner_id() { board systemctl show tilth-runner --property MainPID --value; }
files_of_board() { board find / -xdev '\(' -path /tmp -o -path /root -o -path /run -o -path /var/log -o -path /var/lib/systemd '\)' -prune -o -print | sort; }

install_runner() {
	board "tar -xz" <"$work/first/tilth-$first-linux-amd64.tar.gz"
	tar -c -C "$work" agent.token tilth.pub certs/ca.crt | board "tar -x"
	# A release is looked for every minute or two, not every 10 to 20.
	board "mkdir -p /etc/systemd/system/tilth-runner.service.d
		printf '[Service]\nEnvironment=TILTH_UPDATE_EVERY=30s\n' >/etc/systemd/system/tilth-runner.service.d/often.conf
		cd tilth-$first-linux-amd64 && sh install-runner.sh --name board --label rack=3 --tracker 10.0.2.2:$port --ca ../certs/ca.crt \
			--token ../agent.token --update-key ../tilth.pub" 2>&1
}

# check_rights: the runner is an ordinary user, gets no rights, and writes nowhere but to its folders.
check_rights() {
	board sh -s <<'BOARD' || fail "the runner has rights that it should not have, or lacks some"
set -eux
pid=$(systemctl show tilth-runner --property MainPID --value)
grep -q '^NoNewPrivs:.1' "/proc/$pid/status"
grep -q '^CapBnd:.0*$' "/proc/$pid/status"
[ "$(stat -c %U "/proc/$pid")" = tilth ]
for folder in /var/cache/tilth/runner /var/lib/tilth-runner; do
	nsenter -t "$pid" -m setpriv --reuid tilth --regid tilth --clear-groups touch $folder/x
	rm $folder/x
done
for folder in /usr /etc /var/lib /root /home; do
	if nsenter -t "$pid" -m touch $folder/x; then exit 1; fi
done
BOARD
	"$tilth" devices show board | sed -n '/^SANDBOX/,/^$/p'
	"$tilth" devices show board --json | jq -e '[.sandbox[] | select(.missing)] == []' >/dev/null || fail "the sandbox lacks layers"
}

same_process() { [ "$(runner_id)" = "$1" ] && board systemctl -q is-active tilth-runner; }
logged() { board "journalctl -u tilth-$1 -o cat" | grep -E "$2"; }
complains() { logged runner "the release that the tracker offers is not taken"; }

replaced() { board /var/lib/tilth-runner/tilth --version | grep -F "version $second "; }

update_runner() {
	local id
	id=$(runner_id)
	offer changed
	await 300 "a release with a bad signature is refused" complains
	sleep 70 # until it was asked for again
	[ "$(complains | wc -l)" -eq 1 ] || fail "the runner complains over and over: $(complains)"
	same_process "$id" || fail "a release with a bad signature ended the runner"
	runs "$first" || fail "the runner says that it is $(device .version), not $first"

	offer second
	await 600 "the runner takes the newer release" replaced
	await 120 "the device comes back with the newer release" runs "$second"
	same_process "$id" || fail "the service was started again for the newer release"
}

lose_tracker() {
	local id
	id=$(runner_id)
	kill -KILL "$tracker"
	wait "$tracker" 2>/dev/null || true
	sleep 60
	same_process "$id" || fail "the runner did not outlive its tracker"
	start_tracker
	await 120 "the device comes back" seen_after "$(date -u +%FT%TZ)"
	same_process "$id" || fail "the service was started again for the tracker"
}

reboot_board() {
	local joined
	joined=$(device .joined_at)
	board systemctl reboot 2>/dev/null || true # it complains that there is no login manager to ask, and the line drops
	ssh -q -o ControlPath="$work/ssh" -O exit root@127.0.0.1 2>/dev/null || true
	await 600 "the device joins after a reboot" joined_after "$joined"
	await 600 "root signs in after a reboot" board systemctl -q is-active tilth-runner
	runs "$second" || fail "after the reboot the runner is $(device .version), not $second"
}

uninstall_runner() {
	board "sh tilth-$first-linux-amd64/install-runner.sh --uninstall" 2>&1
	await 120 "the device leaves" absent
	! board systemctl cat tilth-runner >/dev/null 2>&1 || fail "the unit is left"
	files_of_board >"$work/after"
	diff "$work/before" "$work/after" || fail "files are left"
}

# start_units: the units of the Debian package work as they are, on one machine. A builder needs a compiler, which is
# not there.
start_units() {
	board "cat >tilth.deb && dpkg -i tilth.deb && systemctl start tilth-tracker tilth-tuner tilth-runner" \
		<"$work/first/tilth-$first-linux-amd64.deb"
	for agent in tuner runner; do
		await 120 "the $agent joins" logged $agent "joined the tracker"
		! logged $agent "lacks a layer|can be started" || fail "the $agent's sandbox is not complete"
	done
	board "systemctl is-active tilth-tracker tilth-tuner tilth-runner; systemd-analyze security --no-pager | grep tilth"
}

ssh_port=$(free_port)
say "two releases"
make_releases
tar -xzf "$work/first/tilth-$first-linux-amd64.tar.gz" -C "$work"
tilth=$work/tilth-$first-linux-amd64/tilth
say "a board boots"
boot
files_of_board >"$work/before"
say "a runner is installed"
start_farm
install_runner
await 120 "the device joins" present
"$tilth" devices list
check_rights
measure
say "a newer release"
update_runner
measure
say "the tracker is away for a minute"
lose_tracker
measure
say "a reboot"
reboot_board
measure
say "the runner is removed"
uninstall_runner
say "the units of the Debian package"
start_units
say passed
