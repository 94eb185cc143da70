package toolchain

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/tilth-dev/tilth/compiler/target"
)

// missingFile matches the messages of clang, gcc and the linkers for a missing part of the C library.
var missingFile = regexp.MustCompile(`fatal error: '?([^':]+)'? ?(?:file not found|: No such file)` +
	`|(?:cannot open|cannot find|unable to find library) (\S*crt\S*\.o|-l(?:c|m|gcc|gcc_s|pthread|dl))\b`)

// withPackage adds the Debian package to install to an error of a build for t that lacks the target's C library.
// Files of the build itself are never missing.
func withPackage(t *target.Target, err error) error {
	var failure *Error
	if !errors.As(err, &failure) {
		return err
	}
	found := missingFile.FindStringSubmatch(failure.Message)
	if found == nil {
		return err
	}
	return &Error{Kind: Infra, Step: failure.Step, Err: failure, Message: fmt.Sprintf(
		"the C library for %s is not installed (%s is missing): apt-get install %s", t.Arch(), found[1]+found[2], libraryOf(t))}
}

// libraryOf returns the Debian packages with the C library of a target.
func libraryOf(t *target.Target) string {
	if t.IsHost() {
		return "libc6-dev"
	}
	switch t.Arch() {
	case target.X86:
		return "gcc-x86-64-linux-gnu libc6-dev-amd64-cross"
	case target.ARM:
		return "gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
	case target.ARM32:
		return "gcc-arm-linux-gnueabihf libc6-dev-armhf-cross"
	}
	return fmt.Sprintf("gcc-%s-linux-gnu libc6-dev-%[1]s-cross", t.Arch())
}
