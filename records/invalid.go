package records

import "fmt"

// InvalidError says what is wrong with a record that comes from outside. It wraps ErrInvalid.
type InvalidError struct {
	// Field is the one that is at fault, by its way from the record. There are as many as the wire defines.
	Field string
	// Text says what is wrong with it.
	Text string
}

// Error implements error.
func (e *InvalidError) Error() string { return fmt.Sprintf("%v: %s", ErrInvalid, e.Text) }

// Unwrap leads to ErrInvalid.
func (e *InvalidError) Unwrap() error { return ErrInvalid }

// invalid is the error of a field.
func invalid(field, format string, args ...any) error {
	return &InvalidError{Field: field, Text: field + " " + fmt.Sprintf(format, args...)}
}
