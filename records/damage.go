package records

import "fmt"

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
