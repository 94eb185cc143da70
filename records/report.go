package records

import "fmt"

// Report is the result of verifying a records file.
type Report struct {
	// SizeBytes is the size of the file.
	SizeBytes int64
	// Schema is the version of the file's layout. If Sealed is false, rows have no checksums and are only checked to
	// be decodable.
	Schema uint32
	Sealed bool
	// Pages and Rows count what was checked.
	Pages, Rows uint64
	// SetAside counts damaged rows that had been set aside before.
	SetAside uint64
	// Damaged counts damaged pages and rows; Damage has the first hundred.
	Damaged uint64
	Damage  []*Damage
}

// Failure returns a one-line error that wraps ErrDamaged if anything is damaged, else nil.
func (r *Report) Failure(path string) error {
	if r.Damaged == 0 {
		return nil
	}
	return fmt.Errorf("verify records file %s: %w: %d pages or rows, the first is %v: restore a backup, or drop what is damaged with "+
		"'tilth records compact'", path, ErrDamaged, r.Damaged, r.Damage[0])
}
