package cost

import (
	_ "embed" // for the model
	"sync"

	"github.com/tilth-dev/tilth/compiler/costfeatures"
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

// Features describes candidates for processors to a learned cost model. It implements backend.Features.
//
// The columns are numbers from the analysis. Values with a wide range are logarithms. Machine-dependent values are
// relative to the machine's capability, so that one model serves machines of one kind. The choice follows Zheng et
// al., "Ansor: Generating High-Performance Tensor Programs for Deep Learning" (OSDI 2020), appendix B: arithmetic by
// kind, annotations, buffer accesses with their reuse, and the curve of arithmetic intensity. Ansor extracts them from
// lowered programs; here they follow from the loops of each statement. docs/features.md documents each column.
type Features struct{}

var set = costfeatures.NewSet("tilth-features-4", names(), "cost_cycles")

func names() []string {
	list := make([]string, len(columns))
	for k, c := range columns {
		list[k] = c.name
	}
	return list
}

// Set implements backend.Features.
func (Features) Set() *costfeatures.Set { return set }

// Describe implements backend.Features. It does not change the schedule and is safe for concurrent use.
func (Features) Describe(s *schedule.Schedule, t *target.Target, cycles float64) costfeatures.Row {
	a := analysed(s, t, cycles)
	defer a.done()
	values := make([]float32, len(columns))
	for k, c := range columns {
		values[k] = costfeatures.Finite(c.value(a))
	}
	return costfeatures.Row{Set: set, Values: values}
}

// x86 was trained on 64 candidates of each of 223 tasks of the built-in models with AVX-512, recorded twice, and of
// 74 with AVX2 (avx2.json is the native target without AVX-512), all measured on one thread of a Cascade Lake:
//
//	go run ./lab record all --sample 64 --every 2 --most-gflop 2 -o survey
//	go run ./lab record all --sample 64 --every 2 --most-gflop 2 -o again
//	go run ./lab record all --sample 64 --every 6 --most-gflop 2 -o survey2 --target avx2.json
//	go run ./lab costmodel survey again survey2 -o compiler/backend/cpu/cost/x86.txt
//
// The features were those of set 3, whose columns have the same meaning today.
//
//go:embed x86.txt
var x86 string

// Prior implements backend.Features.
func (Features) Prior(t *target.Target) string {
	if t.CPU.Arch != target.X86 {
		return ""
	}
	return x86
}
