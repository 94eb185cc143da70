// This file displays the progress of a job: live on a terminal, or as occasional lines elsewhere. It depends on
// tallies of trials, but not on a tracker.

package display

import "github.com/tilth-dev/tilth/tuner/trials"

// Display shows a job. Update and Close must be called from one goroutine; Write may be called from any.
type Display interface {
	// Update shows the tally, which the caller may change afterwards.
	Update(t *trials.Tally)
	// Write shows a message apart from the display.
	Write(p []byte) (int, error)
	// Close leaves the final state visible and waits until it is shown.
	Close()
}
