package bolt

import (
	"fmt"
	"runtime/debug"

	"github.com/tilth-dev/tilth/records"
)

// guard calls f and converts a panic in bbolt, or a fault in the mapped file, to ErrDamaged. bbolt trusts its pages
// and would otherwise crash the process when one was overwritten.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", records.ErrDamaged, r)
		}
	}()
	return f()
}
