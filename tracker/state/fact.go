package state

import (
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Fact is something that happened and may be counted. The types below are the only ones.
type Fact interface{ isFact() }

type (
	// Granted is a lease granted to an agent, and how long its work had waited.
	Granted struct {
		Kind   tilthv1.AgentKind
		Waited time.Duration
	}
	// Ended is a lease that ended for any reason, and how long it was held.
	Ended struct {
		Kind tilthv1.AgentKind
		Held time.Duration
	}
	// Expired is a lease that expired without a heartbeat.
	Expired struct{ Kind tilthv1.AgentKind }
	// Repeated is a duplicate call that changed nothing.
	Repeated struct{ Call string }
	// Trial is the recorded outcome of a candidate.
	Trial struct{ *tilthv1.Measurement }
	// Built holds the candidates' shares of a build, in seconds.
	Built []float64
	// GaveUp is a batch that became a dead letter.
	GaveUp tilthv1.ErrorClass
	// Dropped is a job that was dropped, with the reason.
	Dropped string
	// Occurrence is an event without data.
	Occurrence int
)

// The occurrences that are counted.
const (
	// CooldownBegan: an agent entered its cooldown.
	CooldownBegan Occurrence = iota
	// OutageBegan: most agents fell silent at once.
	OutageBegan
	// Calibrated: a calibration was accepted.
	Calibrated
	// Quarantined: a device was quarantined, or its quarantine extended.
	Quarantined
	// Warned: a device got a calibration warning.
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
