package bolt

import (
	"fmt"
	"runtime/debug"

	"github.com/tilth-dev/tilth/records"
)

// guard runs f and turns a panic of bbolt, or a fault in the mapped file, into ErrDamaged. bbolt trusts its pages:
// where one was overwritten, it stops the process with an assertion or a wild read.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", records.ErrDamaged, r)
		}
	}()
	return f()
}
