#!/bin/bash
# Runs a package from Java as docs/java.md says, and compares its outputs with those of `tilth run`.
#
# JAVA names a JDK's java, 22 or newer. The default is that of the PATH, if it is new enough, or else that of Debian's
# unstable distribution, unpacked beside the system.
set -euo pipefail
cd "$(dirname "$0")/.."

to=$PWD/.tools/java
. scripts/sid.bash

new_enough() { command -v "$1" >/dev/null && "$1" -version 2>&1 | awk -F '[".]' '/version/ { exit !($2 >= 22) }'; }

# unpack fetches a JDK and its C library, and creates a command that starts it.
unpack() {
	local root=$to/root options
	mkdir -p "$root"
	sid_options "$to/apt"
	(cd "$to/apt/packages" && apt-get "${options[@]}" download openjdk-25-jdk-headless openjdk-25-jre-headless libc6 zlib1g libstdc++6 libgcc-s1)
	for package in "$to"/apt/packages/*.deb; do dpkg -x "$package" "$root"; done
	rm -rf "$to/apt"
	local libraries
	libraries=$(dirname "$(find "$root" -name 'ld-linux-*' -print -quit)")
	printf '#!/bin/sh\nexec "%s" --library-path "%s" "%s" "$@"\n' "$(echo "$libraries"/ld-linux-*)" "$libraries" \
		"$(echo "$root"/usr/lib/jvm/java-25-openjdk-*/bin/java)" >"$to/java"
	chmod +x "$to/java"
}

java=${JAVA:-java}
if ! new_enough "$java"; then
	[ -z "${JAVA:-}" ] || { echo "java.sh: $JAVA is no Java 22 or newer" >&2; exit 1; }
	[ -x "$to/java" ] || unpack
	java=$to/java
fi

tilth=$PWD/bin/tilth example=$PWD/examples/java
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
run() { "$java" --enable-native-access=ALL-UNNAMED "$example/Run.java" "$@"; }

"$tilth" model mlp --batch 3 -o mlp.onnx >/dev/null
"$tilth" compile mlp.onnx --untuned -o mlp.tar >/dev/null
mkdir mlp
tar xf mlp.tar -C mlp
/usr/bin/python3 - <<'EOF'
import numpy as np
x = np.random.default_rng(1).normal(size=(3, 784)).astype("f4")
x.tofile("in.bin")
np.savez("in.npz", data=x)
EOF
"$tilth" run mlp.tar --inputs in.npz --outputs want.npz >/dev/null
run mlp out.bin in.bin
/usr/bin/python3 - <<'EOF'
import numpy as np
got, want = np.fromfile("out.bin", "f4"), np.load("want.npz")["out"]
assert got.size == want.size and (got == want.ravel()).all(), "the outputs differ"
EOF

# fails MESSAGE ARGUMENT... expects a clear exception.
fails() {
	local want=$1
	shift
	if run "$@" >said 2>&1 || ! grep -qF "$want" said; then
		echo "want an exception with '$want':" >&2
		cat said >&2
		exit 1
	fi
}
head -c 100 in.bin >short.bin
fails 'short.bin has 100 bytes; data has 9408' mlp out.bin short.bin
rm mlp/weights.bin
fails 'mlp: ' mlp out.bin in.bin
fails 'Cannot open library' nowhere out.bin in.bin
echo "Java has the same outputs"
