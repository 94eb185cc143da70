package replay

import (
	"slices"

	"github.com/tilth-dev/tilth/internal/stat"
)

// Pool merges samples recorded of the same workload on the same target. A candidate in several samples gets the
// measurements of all, because a long disturbance of the machine rarely affects the same candidate twice.
// Measurements are scaled so that the median candidate is as fast as in the first recording, which compensates for an
// overall slower machine. Sets of a part of a space are unchanged.
func Pool(sets []*Set) []*Set {
	var pooled []*Set
	first := map[[2]string]*Set{}
	for _, s := range sets {
		key := [2]string{s.Workload.Digest(), s.Target.Fingerprint()}
		if known := first[key]; known != nil && s.Sampled {
			known.take(s)
			continue
		}
		if s.Sampled {
			own := *s
			own.Points = slices.Clone(s.Points)
			s, first[key] = &own, &own
		}
		pooled = append(pooled, s)
	}
	return pooled
}

// take adds the measurements of another recording.
func (s *Set) take(other *Set) {
	at := make(map[string]int, len(s.Points))
	for k := range s.Points {
		at[s.Points[k].Origin] = k
	}
	var factors []float64
	for k := range other.Points {
		if known, ok := at[other.Points[k].Origin]; ok && len(s.Points[known].Samples) > 0 && len(other.Points[k].Samples) > 0 {
			factors = append(factors, s.Points[known].LatencySeconds()/other.Points[k].LatencySeconds())
		}
	}
	factor := 1.0
	if len(factors) > 0 {
		_, factor, _ = stat.Quartiles(factors)
	}
	for _, p := range other.Points {
		scaled := make([]float64, len(p.Samples))
		for k, v := range p.Samples {
			scaled[k] = factor * v
		}
		known, ok := at[p.Origin]
		switch {
		case !ok:
			p.Samples = scaled
			s.Points = append(s.Points, p)
		case len(scaled) > 0 && len(s.Points[known].Samples) == 0: // it failed there
			s.Points[known].Samples, s.Points[known].Error, s.Points[known].Message = scaled, "", ""
		default:
			s.Points[known].Samples = append(slices.Clip(s.Points[known].Samples), scaled...)
		}
	}
}
