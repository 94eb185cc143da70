package toolchain

import (
	"regexp"
	"strings"
)

// Kind says whose fault a failure is.
type Kind int

// The kinds.
const (
	// Infra: the compiler is missing or broken, the disk is full, the caller gave up. The source is not to blame.
	Infra Kind = iota + 1
	// Rejected: the compiler refuses the source or crashes on it.
	Rejected
	// Limit: compiling takes more time or memory than allowed.
	Limit
)

// Error is a failure to compile or link.
type Error struct {
	Kind Kind
	// Step is what was attempted, e.g. "compiling kernel.c".
	Step string
	// Message is one line.
	Message string
	// Err is the cause when there is one beyond the message.
	Err error
}

// Error is the step and the message, on one line.
func (e *Error) Error() string { return e.Step + ": " + e.Message }

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// anError begins what a compiler or an assembler objects to.
var anError = regexp.MustCompile(`error *:`)

// maxLine bounds a diagnostic; compilers quote whole macro expansions.
const maxLine = 300

// usefulLine picks the line of a compiler's output that says what is wrong: the first error, else the last line.
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

// causes are the words by which compilers tell why they failed; the first that is there counts.
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

// kindOf classifies the output of a compiler that failed by itself.
func kindOf(output string) Kind {
	for _, c := range causes {
		if strings.Contains(output, c.text) {
			return c.kind
		}
	}
	return Rejected
}
