package state

import (
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Fact is something that happened and that somebody may want to count. The types below are all that there are.
type Fact interface{ isFact() }

type (
	// Granted is a lease that was granted to an agent of a kind, of work that waited so long.
	Granted struct {
		Kind   tilthv1.AgentKind
		Waited time.Duration
	}
	// Ended is a lease that ended, however it did, and how long it was held.
	Ended struct {
		Kind tilthv1.AgentKind
		Held time.Duration
	}
	// Expired is a lease that was lost for want of a heartbeat.
	Expired struct{ Kind tilthv1.AgentKind }
	// Repeated is a call that had taken effect before and changed nothing.
	Repeated struct{ Call string }
	// Trial is the outcome of a candidate that was recorded.
	Trial struct{ *tilthv1.Measurement }
	// Built are candidates' shares of a build, in seconds.
	Built []float64
	// GaveUp is a batch that became a dead letter.
	GaveUp tilthv1.ErrorClass
	// Dropped is a job that is no longer kept, by why.
	Dropped string
	// Occurrence is what has nothing more to tell.
	Occurrence int
)

// The occurrences.
const (
	// Rested is an agent that was given a rest.
	Rested Occurrence = iota
	// OutageBegan is when most agents fell silent at once.
	OutageBegan
	// Calibrated is a calibration that was taken in.
	Calibrated
	// Quarantined is a device that was put into quarantine, or kept there.
	Quarantined
	// Warned is a device that began to be warned about.
	Warned
)

func (Granted) isFact()    {}
func (Ended) isFact()      {}
func (Expired) isFact()    {}
func (Repeated) isFact()   {}
func (Trial) isFact()      {}
func (Built) isFact()      {}
func (GaveUp) isFact()     {}
func (Dropped) isFact()    {}
func (Occurrence) isFact() {}
