package cost

import (
	"sync"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// candidate is the source of the columns.
type candidate struct {
	Analysis
	// cycles is the analytic cost of the candidate's space.
	cycles float64
	// asked holds the workload's requirements, which all its candidates share.
	asked asked
}

// asked holds the minimum work of a workload.
type asked struct {
	of          *expr.Workload
	flop, bytes float64
}

// candidates recycles the memory of analyses.
var candidates = sync.Pool{New: func() any { return new(candidate) }}

// analysed returns the candidate of a schedule. The caller must release it with done.
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
