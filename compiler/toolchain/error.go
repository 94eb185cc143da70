package toolchain

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/tilth-dev/tilth/compiler/target"
)

// Kind classifies the cause of a failure.
type Kind int

// The causes of failure.
const (
	// Infra means that the compiler is missing or broken, the disk is full, or the caller cancelled. The source is
	// not at fault.
	Infra Kind = iota + 1
	// Rejected means that the compiler refused the source or crashed on it.
	Rejected
	// Limit means that compilation exceeded its time or memory limit.
	Limit
)

// Error is a failure to compile or link.
type Error struct {
	Kind Kind
	// Step is the attempted action, e.g. "compiling kernel.c".
	Step string
	// Message is a single line.
	Message string
	// Err is the underlying error, if any.
	Err error
}

// Error returns the step and the message on one line.
func (e *Error) Error() string { return e.Step + ": " + e.Message }

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// anError matches the start of a compiler or assembler error.
var anError = regexp.MustCompile(`error *:`)

// maxLine limits the length of a diagnostic, since compilers quote whole macro expansions.
const maxLine = 300

// usefulLine returns the most useful line of a compiler's output: the first error, or else the last line.
func usefulLine(output string) string {
	best := ""
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if anError.MatchString(line) || strings.Contains(line, "LLVM ERROR") || strings.Contains(line, "undefined reference") {
			best = line
			break
		}
		if line != "" {
			best = line
		}
	}
	if len(best) > maxLine {
		best = strings.ToValidUTF8(best[:maxLine], "") + "..."
	}
	return best
}

// causes maps phrases of compiler output to kinds of failure; the first match counts.
var causes = []struct {
	text string
	kind Kind
}{
	{"No space left on device", Infra},
	{"Disk quota exceeded", Infra},
	{"Read-only file system", Infra},
	{"unable to execute", Infra},
	{"out of memory", Limit},
	{"Cannot allocate memory", Limit},
	{"cannot allocate", Limit},
	{"virtual memory exhausted", Limit},
	{"std::bad_alloc", Limit},
}

// kindOf classifies the output of a compiler that failed.
func kindOf(output string) Kind {
	for _, c := range causes {
		if strings.Contains(output, c.text) {
			return c.kind
		}
	}
	return Rejected
}

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
