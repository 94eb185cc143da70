package state

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestReadersKeepTheirModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for _, name := range []string{"r1", "b1", "t1"} {
			w.join(name)
		}
		for len(w.m.jobs) < 2 {
			w.submit()
		}
		w.shiftUntilRead()
		w.pass(5*time.Minute, lively)
		for _, r := range w.held {
			if reads(r) && w.m.lookUp(r.GetLease()) == nil {
				t.Fatal("a model was taken from its reader")
			}
		}
	})
}

// shiftUntilRead lets the tuner lease all available work.
func (w *world) shiftUntilRead() {
	for range w.m.jobs {
		for _, session := range w.sessions() {
			w.leaseTo(session)
		}
	}
}
