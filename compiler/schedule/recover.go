package schedule

import (
	"errors"
	"fmt"
	"regexp"
	"runtime/debug"
)

// ErrInternal is wrapped by errors made from panics.
var ErrInternal = errors.New("internal error")

// RecoverAs turns a panic of the compiler into a one-line error with its location, so that a bug does not crash an
// agent. Defer it with the function's result.
func RecoverAs(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v (%s)", ErrInternal, p, site(debug.Stack()))
	}
}

// sourceLine matches the lines of a stack dump with positions in the guarded packages, below the first panic: deferred
// functions may have repeated it.
var sourceLine = regexp.MustCompile(`(?s).*\npanic\(.*?((?:compiler|builder|tuner)/[\w/]+\.go:\d+)`)

// site returns the location of a panic: the first of our lines.
func site(stack []byte) string {
	if line := sourceLine.FindSubmatch(stack); line != nil {
		return string(line[1])
	}
	return "unknown place"
}
