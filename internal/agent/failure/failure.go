package failure

import (
	"errors"
	"strings"
	"unicode"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Farm is a failure to get artifacts or to hand them over: neither the agent nor its work is to blame.
type Farm struct{ Cause error }

// Error is the cause's.
func (e *Farm) Error() string { return e.Cause.Error() }

// Unwrap is the cause.
func (e *Farm) Unwrap() error { return e.Cause }

// Class is FARM_INFRA for what a Farm caused, and else the class of failures of the agent's own side.
func Class(err error, own tilthv1.ErrorClass) tilthv1.ErrorClass {
	var farm *Farm
	if errors.As(err, &farm) {
		return tilthv1.ErrorClass_ERROR_CLASS_FARM_INFRA
	}
	return own
}

// Message is what is reported of a text that a compiler or a candidate may have worded: the beginning of its first
// line, with blanks in the place of what is not printable, such as the sequences that move a terminal's cursor. The
// wire takes nothing but UTF-8.
func Message(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	line = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, line[:min(len(line), wire.TextBytes)])
	return strings.TrimSpace(line)
}
