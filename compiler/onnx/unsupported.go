package onnx

import (
	"errors"
	"fmt"
)

// ErrUnsupported marks errors about valid files with unsupported contents, as opposed to invalid files.
var ErrUnsupported = errors.New("not supported")

// unsupported is an error of that kind with its own text.
type unsupported string

func unsupportedf(format string, args ...any) error { return unsupported(fmt.Sprintf(format, args...)) }

// Error returns the text.
func (e unsupported) Error() string { return string(e) }

// Is reports whether the target is ErrUnsupported.
func (e unsupported) Is(target error) bool { return target == ErrUnsupported }
