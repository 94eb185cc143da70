#!/bin/sh
# Installs a runner as a systemd service, so that this machine becomes a device of a farm. Run it as root, from a
# release's archive or from deploy/ of the repository. Run it again to change the options.
#   sh install-runner.sh --tracker tracker.example.com:9190 --ca ca.crt --token board7.token --label rack=3
#   sh install-runner.sh --uninstall
# Options:
#   --tracker ADDRESS   address of the tracker
#   --name NAME         name of the device (default: HOST/runner)
#   --label KEY=VALUE   label for selecting the device; repeatable
#   --target NAME       target of the device (default: native)
#   --threads LIST      numbers of threads to offer, such as 1,4
#   --ca FILE           CA of the tracker's certificate
#   --token FILE        token of this runner
#   --update-key FILE   public key of releases to which the runner updates itself
#   --program FILE      the program (default: beside this script, else the tilth of PATH)
#   --root FOLDER       install below this folder, for an image: creates no user and starts nothing
set -eu

fail() {
	echo "install-runner.sh: $*" >&2
	exit 1
}

# plain WHAT VALUE rejects characters that would end a quoted text.
plain() {
	case "$2" in
	'' | *[\"\\]* | *"
"*) fail "$1 \"$2\": want a text without quotes, backslashes and line breaks" ;;
	esac
}

# manage COMMAND... runs systemctl, except for an image.
manage() {
	[ -n "$root" ] || systemctl "$@"
}

# put MODE FILE writes standard input to a file atomically, readable for the service.
put() {
	mkdir -p "$(dirname "$2")"
	staged=$2.new
	(umask 077 && cat >"$staged") || fail "cannot write $staged"
	[ -n "$root" ] || chown root:tilth "$staged"
	chmod "$1" "$staged"
	mv -f "$staged" "$2"
	staged=''
}

# keep MODE FILE NAME copies a file to the settings, if one is given.
keep() {
	[ -n "$2" ] || return 0
	put "$1" "$root$settings/$3" <"$2"
}

# settings_text prints the runner's settings.
settings_text() {
	echo "# Written by install-runner.sh."
	echo "tracker: \"$tracker\""
	[ -z "$name" ] || echo "name: \"$name\""
	[ -z "$target" ] || echo "target: \"$target\""
	[ -z "$threads" ] || echo "threads: \"$threads\""
	[ -z "$ca" ] || echo "tls-ca: $settings/runner-ca.crt"
	[ -z "$token" ] || echo "token-file: $settings/runner.token"
	[ -z "$key" ] || echo "update-key: $settings/runner-update.pub"
	[ -z "$labels" ] || printf 'label:\n%s' "$labels"
}

# dropin_text prints the changes to the unit. Only a self-updating runner may write to its program's folder.
dropin_text() {
	echo "# Written by install-runner.sh."
	echo "[Unit]"
	echo "# Keep restarting: an expired token may be replaced later."
	echo "StartLimitIntervalSec=0"
	echo "[Service]"
	echo "EnvironmentFile="
	echo "ExecStart="
	echo "ExecStart=$home/tilth runner --config $settings/runner.yaml --cache /var/cache/tilth/runner --http 127.0.0.1:9194"
	[ -z "$key" ] || echo "StateDirectory=$(basename "$home")"
}

# find_program prints the path of the program to install.
find_program() {
	if [ -n "$program" ]; then
		[ -f "$program" ] || fail "there is no program $program"
		echo "$program"
	elif [ -f "$here/tilth" ]; then
		echo "$here/tilth"
	else
		command -v tilth || fail "there is no program: name it with --program"
	fi
}

# place installs the program atomically, also over one that has updated itself. The existing folder may belong to the
# runner, so nothing in it is read, written or run; a new folder, created by root and handed over last, replaces it.
place() {
	mkdir -p "$(dirname "$root$home")"
	staged=$root$home.new
	rm -rf "$staged"
	mkdir "$staged" || fail "cannot write to $(dirname "$root$home")"
	cp "$1" "$staged/tilth" || fail "cannot write to $staged"
	chmod 0755 "$staged" "$staged/tilth"
	[ -n "$root" ] || "$staged/tilth" --version >/dev/null || fail "$1 does not run on this machine"
	[ ! -f "$root$units/tilth-runner.service" ] || manage stop tilth-runner
	rm -rf "$root$home"
	mv -T "$staged" "$root$home"
	staged=''
	[ -n "$root" ] || [ -z "$key" ] || chown tilth:tilth "$home/tilth" "$home"
}

install_all() {
	[ -n "$tracker" ] || fail "where is the tracker? Give --tracker ADDRESS"
	[ -f "$here/systemd/tilth-runner.service" ] || fail "$here has no systemd/tilth-runner.service: run the script where it was unpacked"
	from=$(find_program)
	if [ -z "$root" ] && ! id tilth >/dev/null 2>&1; then
		useradd --system --home-dir /var/lib/tilth --shell /usr/sbin/nologin tilth
	fi
	place "$from"
	keep 0644 "$ca" runner-ca.crt
	keep 0640 "$token" runner.token
	keep 0644 "$key" runner-update.pub
	put 0644 "$root$settings/runner.yaml" <<EOF
$(settings_text)
EOF
	put 0644 "$root$units/tilth-runner.service" <"$here/systemd/tilth-runner.service"
	put 0644 "$root$units/tilth-runner.service.d/board.conf" <<EOF
$(dropin_text)
EOF
	manage daemon-reload
	manage enable tilth-runner
	manage restart tilth-runner
	echo "installed the runner; its log: journalctl -u tilth-runner"
}

uninstall() {
	[ ! -f "$root$units/tilth-runner.service" ] || manage disable --now tilth-runner
	rm -rf "$root$units/tilth-runner.service" "$root$units/tilth-runner.service.d" "$root$home" "$root/var/cache/tilth/runner"
	for file in runner.yaml runner-ca.crt runner.token runner-update.pub; do
		rm -f "$root$settings/$file"
	done
	rmdir "$root$settings" "$root/var/cache/tilth" 2>/dev/null || true # unless another service has files there
	manage daemon-reload
	echo "removed the runner; the user tilth and what other services of the farm have are left"
}

main() {
	here=$(cd "$(dirname "$0")" && pwd)
	settings=/etc/tilth units=/etc/systemd/system home=/var/lib/tilth-runner
	tracker='' name='' target='' threads='' ca='' token='' key='' program='' root='' labels='' action=install_all staged=''
	while [ $# -gt 0 ]; do
		case "$1" in
		--uninstall) action=uninstall && shift && continue ;;
		--tracker | --name | --label | --target | --threads | --ca | --token | --update-key | --program | --root) ;;
		*) fail "unknown option $1: the beginning of $0 lists them" ;;
		esac
		[ $# -ge 2 ] || fail "$1 wants a value"
		plain "$1" "$2"
		case "$1" in
		--ca | --token | --update-key) [ -f "$2" ] || fail "there is no file $2" ;;
		esac
		case "$1" in
		--tracker) tracker=$2 ;;
		--name) name=$2 ;;
		--target) target=$2 ;;
		--threads) threads=$2 ;;
		--ca) ca=$2 ;;
		--token) token=$2 ;;
		--update-key) key=$2 ;;
		--program) program=$2 ;;
		--root) root=${2%/} ;;
		--label)
			case "$2" in
			?*=*) labels="$labels  \"${2%%=*}\": \"${2#*=}\"
" ;;
			*) fail "--label $2: want KEY=VALUE" ;;
			esac
			;;
		esac
		shift 2
	done
	[ -n "$root" ] || [ "$(id -u)" -eq 0 ] || fail "run this as root"
	umask 022
	trap 'rm -rf ${staged:+"$staged"}' EXIT
	trap 'exit 130' INT TERM
	$action
}

# Last, so that a truncated script does nothing.
main "$@"
