package replay

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/stats"
)

// Header describes a set.
type Header struct {
	// Task is the workload's name for display. Model is its built-in model.
	Task  string
	Model string

	Workload *expr.Workload
	// Target includes the toolchain.
	Target   *target.Target
	Numerics schedule.Numerics
	// Values lists the values of each restricted knob in the part. Knobs that are missing have all values.
	Values map[string][]int64
	// Sampled is set if the set holds a sample of the whole space instead of all schedules of a part: models
	// may learn from it, but searches cannot be replayed on it. Points missing in a later version's space
	// must be skipped.
	Sampled bool
}

// Space returns the part of the workload's space that the set covers. It returns an error if this version
// lacks its knobs or values.
func (h *Header) Space() (*searchspace.Space, error) {
	s, err := registry.Space(h.Workload, h.Target, h.Numerics)
	if err == nil {
		s, err = s.Restrict(h.Values)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: record it again", h.Task, err)
	}
	return s, nil
}

// Point holds the measurements of one candidate.
type Point struct {
	// Origin is the point of the space as text.
	Origin string
	// Samples are times of single executions in seconds. It is empty after a failure, and short for clearly slow
	// candidates.
	Samples []float64
	// Error is the error class, or empty. Message describes it.
	Error, Message string
}

// LatencySeconds returns the lower quartile of the samples, or 0. Disturbances only add to a sample and vary
// over a recording: for equal kernels, lower quartiles of half the samples differed half as much as their
// medians.
func (p *Point) LatencySeconds() float64 {
	low, _, _ := stats.Quartiles(p.Samples)
	return low
}

// Set holds the measurements of one workload: one of each schedule in a part of its space, or a sample of the
// whole space.
type Set struct {
	Header
	Points []Point
}

// Best returns the lowest latency of the set in seconds, or 0 if every candidate failed.
func (s *Set) Best() float64 {
	best := 0.0
	for k := range s.Points {
		if l := s.Points[k].LatencySeconds(); l > 0 && (best == 0 || l < best) {
			best = l
		}
	}
	return best
}

// Candidate is a distinct schedule of a space.
type Candidate struct {
	Point  searchspace.Point
	Origin string
	Digest string
	Trace  []byte
}

// Candidates returns the distinct schedules of a space in the order of its knobs, at most limit (0 = all). Of the
// points with the same schedule it takes the first. It is meant for restricted spaces, because whole ones have
// billions of points.
func Candidates(s *searchspace.Space, limit int) []Candidate {
	var list []Candidate
	seen := map[string]bool{}
	for p, ok := make(searchspace.Point, len(s.Knobs)), true; ok && (limit == 0 || len(list) < limit); p, ok = s.Next(p) {
		if c, ok := candidateOf(s, p); ok && !seen[c.Digest] {
			seen[c.Digest] = true
			list = append(list, c)
		}
	}
	return list
}

// candidateOf returns the schedule of a point, if it is legal.
func candidateOf(s *searchspace.Space, p searchspace.Point) (Candidate, bool) {
	sch, err := s.Apply(p)
	if err != nil {
		return Candidate{}, false
	}
	trace := sch.Trace()
	return Candidate{Point: slices.Clone(p), Origin: s.Format(p), Digest: schedule.Digest(trace), Trace: trace}, true
}

// rounded rounds a time to four digits, which is finer than any measurement.
func rounded(seconds float64) float64 {
	v, err := strconv.ParseFloat(strconv.FormatFloat(seconds, 'g', 4, 64), 64)
	if err != nil {
		return seconds
	}
	return v
}

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
		_, factor, _ = stats.Quartiles(factors)
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
