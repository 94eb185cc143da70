package onnx

import (
	"errors"
	"fmt"
)

// ErrUnsupported is the kind of errors about files that are in order but hold what is not supported here, unlike files
// that are broken.
var ErrUnsupported = errors.New("not supported")

// unsupported is an error of that kind with a text of its own.
type unsupported string

func unsupportedf(format string, args ...any) error { return unsupported(fmt.Sprintf(format, args...)) }

// Error is the text.
func (e unsupported) Error() string { return string(e) }

// Is reports whether the target is ErrUnsupported.
func (e unsupported) Is(target error) bool { return target == ErrUnsupported }
