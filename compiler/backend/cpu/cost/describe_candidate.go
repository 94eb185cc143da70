package cost

import (
	"sync"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// candidate is what the columns are read from.
type candidate struct {
	Analysis
	// cycles is the analytic cost of its space.
	cycles float64
	// asked is what the workload asks for: the same for all its candidates.
	asked asked
}

// asked is the least that a workload takes.
type asked struct {
	of          *expr.Workload
	flop, bytes float64
}

// candidates keeps the memory of analyses between candidates.
var candidates = sync.Pool{New: func() any { return new(candidate) }}

// analysed is the candidate of a schedule, to be given back with done.
func analysed(s *schedule.Schedule, t *target.Target, cycles float64) *candidate {
	a := candidates.Get().(*candidate)
	a.Run(s, t)
	a.cycles = cycles
	if w := s.Workload; a.asked.of != w {
		a.asked = asked{w, w.Flop(), float64(w.Bytes())}
	}
	return a
}

func (a *candidate) done() {
	a.Schedule, a.Target = nil, nil
	candidates.Put(a)
}
