package jobclient

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/internal/wire"
)

// TestNumericsHaveOneNameInTheCompilerAndOnTheWire is necessary because the compiler does not import the wire, nor
// the store the compiler.
func TestNumericsHaveOneNameInTheCompilerAndOnTheWire(t *testing.T) {
	for level, name := range map[schedule.Numerics]string{
		schedule.Strict: wire.NumericsStrict, schedule.Default: wire.NumericsDefault, schedule.Fast: wire.NumericsFast,
	} {
		if level.String() != name {
			t.Errorf("%v is %q on the wire", level, name)
		}
	}
}
