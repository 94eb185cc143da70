package toolchain

import (
	"regexp"
	"strings"
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
