package knowledge

import (
	"hash/fnv"
	"math"
	"strconv"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
)

const standin = 48

func featureNames() []string {
	names := make([]string, standin)
	for k := range names {
		names[k] = "f" + strconv.Itoa(k)
	}
	return names
}

// Row describes a point for the model.
type Row struct {
	features []float32
	// cycles is the analytic cost.
	cycles float64
}

// Describe is a point's row.
func Describe(s *space.Space, p space.Point, sch *schedule.Schedule) Row {
	r := Row{features: make([]float32, standin), cycles: s.Cost(p)}
	for k, knob := range s.Knobs {
		h := fnv.New32a()
		h.Write([]byte(knob.Name))
		r.features[h.Sum32()%44] = float32(math.Log2(float64(1 + knob.Values[p[k]])))
	}
	r.features[44] = float32(math.Log2(r.cycles + 1))
	r.features[45] = float32(math.Log2(s.Workload.Flop() + 1))
	r.features[46] = float32(math.Log2(float64(s.Workload.Bytes() + 1)))
	r.features[47] = float32(s.Target.Threads)
	return r
}
