package display

import (
	"io"

	"github.com/tilth-dev/tilth/tuner/trials"
)

// Quiet shows no progress, but passes on messages.
type Quiet struct{ io.Writer }

// Update implements Display.
func (Quiet) Update(*trials.Tally) {}

// Close implements Display.
func (Quiet) Close() {}
