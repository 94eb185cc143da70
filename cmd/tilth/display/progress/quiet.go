package progress

import (
	"io"

	"github.com/tilth-dev/tilth/tuning/trials"
)

// Quiet shows no progress; messages go to its writer all the same.
type Quiet struct{ io.Writer }

// Update implements Display.
func (Quiet) Update(*trials.Tally) {}

// Close implements Display.
func (Quiet) Close() {}
