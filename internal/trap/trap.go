package trap

import (
	"errors"
	"fmt"
	"regexp"
	"runtime/debug"
)

// ErrInternal is wrapped by errors made from panics.
var ErrInternal = errors.New("internal error")

// AsError turns a panic into a one-line error with its location. Defer it with the function's result.
func AsError(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v (%s)", ErrInternal, p, site(debug.Stack()))
	}
}

// sourceLine matches the lines of a stack dump with positions in the guarded packages.
var sourceLine = regexp.MustCompile(`(?:compiler|builder|tuner)/[\w/]+\.go:\d+`)

// site returns the location of a panic: the first of our lines outside this package.
func site(stack []byte) string {
	if line := sourceLine.Find(stack); line != nil {
		return string(line)
	}
	return "unknown place"
}
