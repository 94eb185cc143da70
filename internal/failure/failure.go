// Package failure tells a tracker why an agent did not do its work, and who is to blame.
package failure

import (
	"errors"
	"strings"
	"unicode"

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

// Message is what is reported of a text: its first line, as UTF-8, since what a compiler or a candidate prints may be anything and
// the wire takes nothing else, and printable, since it could move a terminal's cursor.
func Message(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(line, "?"))
}
