package trap

import (
	"errors"
	"fmt"
	"regexp"
	"runtime/debug"
)

// ErrInternal is wrapped by errors that were panics.
var ErrInternal = errors.New("internal error")

// AsError turns a panic into an error of one line that names where it happened. Use it deferred, with the function's
// result.
func AsError(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v (%s)", ErrInternal, p, site(debug.Stack()))
	}
}

// sourceLine matches the position lines of a stack dump that are in the packages guarded.
var sourceLine = regexp.MustCompile(`(?:compiler|builder|tuner)/[\w/]+\.go:\d+`)

// site is the place of a panic: the first of our lines, this package's own aside.
func site(stack []byte) string {
	if line := sourceLine.Find(stack); line != nil {
		return string(line)
	}
	return "unknown place"
}
