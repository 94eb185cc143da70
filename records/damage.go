package records

import "fmt"

// Damage is a page or a row of a records file that is not as it was written. It is an error that wraps ErrDamaged.
type Damage struct {
	// Bucket is the bucket of the row or of the page; empty for pages of none.
	Bucket string
	// Key is the row's; nil for a page.
	Key []byte
	// Page is the number of the page; 0 for a row.
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
