package records

import (
	"errors"
	"fmt"
)

var (
	// ErrMissing is returned by OpenReadOnly if the file does not exist.
	ErrMissing = errors.New("no such records file")
	// ErrLocked is returned by Open and OpenReadOnly while another process has the file open for writing.
	ErrLocked = errors.New("in use by another process")
	// ErrVersion is returned for a file (store or export) of a version that this program does not read.
	ErrVersion = errors.New("written by another version of Tilth")
	// ErrDamaged is returned for a file that is truncated, overwritten, or not a records file at all.
	ErrDamaged = errors.New("damaged or not a records file")
	// ErrNotFound is returned by look-ups of a single job, batch or agent that does not exist.
	ErrNotFound = errors.New("not found")
	// ErrClosed is returned by commits after Close.
	ErrClosed = errors.New("records file is closed")
	// ErrAway is returned by look-ups while the database server is unavailable. Commits wait.
	ErrAway = errors.New("the database server is unavailable")
	// ErrInUse is returned if long transactions block a schema change. Opening the store may be retried.
	ErrInUse = errors.New("transactions use tables that are to be changed: end those that last, which pg_stat_activity lists")
	// ErrTakenOver is returned by commits after another process has taken over the store.
	ErrTakenOver = errors.New("another tracker has taken it over: this one stops")
	// ErrShards is returned if the store has a different number of shards than requested.
	ErrShards = errors.New("the database has another number of shards")
	// ErrUnfinished is returned for a store whose conversion is incomplete.
	ErrUnfinished = errors.New("its conversion is not finished")
	// ErrNotEmpty is wrapped by the error of a conversion into a store that holds anything but an unfinished part of
	// it.
	ErrNotEmpty = errors.New("the target is not empty")
	// ErrDiffers is wrapped by the error of a conversion whose target does not match the source.
	ErrDiffers = errors.New("the target differs from the source")
	// ErrInvalid is wrapped by the errors of Validate and of imports with an invalid record.
	ErrInvalid = errors.New("invalid record")
)

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

// Damage describes a damaged page or row of a records file. It is an error that wraps ErrDamaged.
type Damage struct {
	// Bucket is the bucket of the row or page; empty for pages outside buckets.
	Bucket string
	// Key is the key of a row; nil for a page.
	Key []byte
	// Page is the page number; 0 for a row.
	Page uint64
	// Err wraps ErrDamaged.
	Err error
}

// Error implements error.
func (d *Damage) Error() string {
	switch {
	case d.Key != nil:
		return fmt.Sprintf("row %q of %s: %v", d.Key, d.Bucket, d.Err)
	case d.Bucket != "":
		return fmt.Sprintf("page %d of %s: %v", d.Page, d.Bucket, d.Err)
	}
	return fmt.Sprintf("page %d: %v", d.Page, d.Err)
}

// Unwrap implements errors.Unwrap.
func (d *Damage) Unwrap() error { return d.Err }
