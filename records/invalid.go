package records

import "fmt"

// InvalidError describes an invalid record from outside. It wraps ErrInvalid.
type InvalidError struct {
	// Field is the path of the invalid field within the record, one of those that the wire defines.
	Field string
	// Text describes the problem.
	Text string
}

// Error implements error.
func (e *InvalidError) Error() string { return fmt.Sprintf("%v: %s", ErrInvalid, e.Text) }

// Unwrap returns ErrInvalid.
func (e *InvalidError) Unwrap() error { return ErrInvalid }

// invalid returns the error for a field.
func invalid(field, format string, args ...any) error {
	return &InvalidError{Field: field, Text: field + " " + fmt.Sprintf(format, args...)}
}
