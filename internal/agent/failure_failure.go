// This file classifies failures of an agent's work, in the error classes of the wire.

package agent

import (
	"errors"
	"strings"
	"unicode"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// FarmError is a failure to transfer artifacts. Neither the agent nor its work is the cause.
type FarmError struct{ Cause error }

func (e *FarmError) Error() string { return e.Cause.Error() }

func (e *FarmError) Unwrap() error { return e.Cause }

// FailureClass returns FARM_INFRA for errors caused by a Farm failure, and own for all others.
func FailureClass(err error, own tilthv1.ErrorClass) tilthv1.ErrorClass {
	var farm *FarmError
	if errors.As(err, &farm) {
		return tilthv1.ErrorClass_ERROR_CLASS_FARM_INFRA
	}
	return own
}

// FailureMessage sanitizes a text that may come from a compiler or a candidate: it returns the start of the first
// line, with unprintable characters, such as terminal escape sequences, replaced by blanks. The wire only
// accepts UTF-8.
func FailureMessage(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	line = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, line[:min(len(line), wire.TextBytes)])
	return strings.TrimSpace(line)
}
