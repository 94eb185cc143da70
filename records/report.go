package records

import "fmt"

// Report is what a check of a records file found.
type Report struct {
	// SizeBytes is that of the file.
	SizeBytes int64
	// Schema is the version of the file's layout. Rows of one that is not Sealed have no checksums, and are checked to
	// be messages only.
	Schema uint32
	Sealed bool
	// Pages and Rows are how many were checked.
	Pages, Rows uint64
	// SetAside is how many rows were damaged, and set aside, before.
	SetAside uint64
	// Damaged is how many pages and rows are not as they were written, and Damage the first hundred of them.
	Damaged uint64
	Damage  []*Damage
}

// Failure is an error in one line when something is damaged; nil otherwise. It wraps ErrDamaged.
func (r *Report) Failure(path string) error {
	if r.Damaged == 0 {
		return nil
	}
	return fmt.Errorf("verify records file %s: %w: %d pages or rows, the first is %v: restore a backup, or drop what is damaged with "+
		"'tilth records compact'", path, ErrDamaged, r.Damaged, r.Damage[0])
}
