#!/bin/bash
# Installs missing Debian packages for a task of this repository.
# usage: scripts/packages.sh demo|test|bare|service|bench|peers|python|dist|docs|fresh|tutorials ...
set -euo pipefail

compilers=(clang-19 lld-19)
tests=(strace libclang-rt-19-dev gcc libc6-dev gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user libonnx-testdata)
tests+=(gcc-arm-linux-gnueabihf libc6-dev-armhf-cross gcc-riscv64-linux-gnu libc6-dev-riscv64-cross)
# Separate hosts, the check of unit files, and Prometheus with promtool.
tests+=(iproute2 systemd prometheus)
# What starts containers.
tests+=(runc)
# A library that the example examples/openblas-product calls.
tests+=(libopenblas0-pthread)
# OpenCL on processors.
tests+=(pocl-opencl-icd ocl-icd-libopencl1)
# The database server; tests start their own.
tests+=(postgresql)
# The program that times PyTorch, tested with a fake PyTorch; an environment for the wheel of a release.
tests+=(python3 python3-venv)
# The browser for tests of the tracker's pages.
tests+=(chromium)
# Tools for the examples of docs/api.md.
tests+=(curl)
# Tools for the example of docs/c.md.
tests+=(cmake make)
# Dependencies of the Python package, for Debian's own Python.
tests+=(python3-numpy python3-grpcio python3-protobuf)
# Code generators of the wire for a Python program without that package.
tests+=(protobuf-compiler protobuf-compiler-grpc libprotobuf-dev)
# minisign, and the check of install.sh.
tests+=(minisign shellcheck)
runtimes=(nodejs npm)
# Emulators of bare-metal boards, and the usual compiler of firmware.
bare=(qemu-system-arm qemu-system-misc gcc-arm-none-eabi)
# A machine with systemd, its contents, and tools to inspect it.
service=(debootstrap e2fsprogs qemu-system-x86 openssh-client minisign jq python3)
peers=(g++ binutils)
# PyTorch for tests of the Python package, and checkers of its style and types.
python=(python3-torch python3-torchvision python3-onnx flake8 mypy black)
# Checks of a release: Debian's package checker, and the libraries of other architectures.
dist=(python3 lintian man-db groff-base minisign shellcheck qemu-user libc6-arm64-cross libc6-riscv64-cross)
# Tools that build the documentation site.
docs=(hugo)
# What makes a minimal root of Debian.
fresh=(debootstrap)
# Packages that the tutorials install.
tutorials=(gcc libc6-dev python3-venv prometheus curl jq)

wanted=()
for task in "$@"; do
	case "$task" in
	demo) wanted+=("${compilers[@]}") ;;
	test) wanted+=("${compilers[@]}" "${tests[@]}") ;;
	bare) wanted+=("${bare[@]}") ;;
	service) wanted+=("${service[@]}") ;;
	bench) wanted+=("${compilers[@]}" "${runtimes[@]}") ;;
	peers) wanted+=("${peers[@]}") ;;
	python) wanted+=("${python[@]}") ;;
	dist) wanted+=("${dist[@]}") ;;
	docs) wanted+=("${docs[@]}") ;;
	fresh) wanted+=("${fresh[@]}") ;;
	tutorials) wanted+=("${compilers[@]}" "${python[@]}" "${tutorials[@]}") ;;
	*)
		echo "packages.sh: no such task: $task (want demo, test, bare, service, bench, peers, python, dist, docs, fresh or tutorials)" >&2
		exit 2
		;;
	esac
done

installed() { dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null | grep -q '^ii'; }
# An existing program from any source replaces its package.
present() {
	case "$1" in
	clang-19) command -v clang-19 ;;
	lld-19) command -v ld.lld-19 ;;
	iproute2) command -v ip ;;
	systemd) command -v systemd-analyze ;;
	prometheus) command -v prometheus && command -v promtool ;;
	nodejs) command -v node ;;
	hugo) command -v hugo ;;
	npm) command -v npm ;;
	strace) command -v strace ;;
	python3) command -v python3 ;;
	cmake) command -v cmake ;;
	make) command -v make ;;
	chromium) command -v chromium || command -v google-chrome ;;
	runc) command -v runc ;;
	postgresql) command -v initdb || ls /usr/lib/postgresql/*/bin/initdb ;;
	*) installed "$1" ;;
	esac >/dev/null 2>&1
}

missing=()
for package in "${wanted[@]}"; do
	present "$package" || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null; then
	echo "packages.sh: install these by hand (no apt-get here): ${missing[*]}" >&2
	exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
	if ! command -v sudo >/dev/null; then
		echo "packages.sh: run this as root: apt-get install ${missing[*]}" >&2
		exit 1
	fi
	as_root=(sudo)
fi
echo "installing: ${missing[*]}"
"${as_root[@]}" apt-get update -qq
DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
