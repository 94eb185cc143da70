package progress

import "github.com/tilth-dev/tilth/tuning/trials"

// Display shows a job. Update and Close are called from one goroutine; Write, for other messages, from any.
type Display interface {
	// Update shows the tally, which the caller may change afterwards.
	Update(t *trials.Tally)
	// Write shows a message apart from the display.
	Write(p []byte) (int, error)
	// Close leaves the last state standing, and waits until it is shown.
	Close()
}
