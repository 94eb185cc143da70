package replay

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/stat"
)

// Header says what was measured.
type Header struct {
	// Task names the workload for people; Model is the built-in model it was taken from.
	Task  string
	Model string

	Workload *expr.Workload
	// Target has its toolchain.
	Target   *target.Target
	Numerics schedule.Numerics
	// Values are those that the part of the space has, by knob; a knob that is not named has all.
	Values map[string][]int64
	// Sampled says that the set has some schedules of the whole space, not all of a part: models may learn from it,
	// but no search can be replayed on it. Points that a later version's space lacks are to be left out.
	Sampled bool
}

// Space is the part of the workload's space that the set covers. The error says that this version has no such knobs or
// values.
func (h *Header) Space() (*space.Space, error) {
	s, err := registry.Space(h.Workload, h.Target, h.Numerics)
	if err == nil {
		s, err = s.Restrict(h.Values)
	}
	if err != nil {
		return nil, fmt.Errorf("replay: %s: %w: record it again", h.Task, err)
	}
	return s, nil
}

// Point is what was measured of one candidate.
type Point struct {
	// Origin is the point of the space as text.
	Origin string
	// Samples are seconds of one execution each; none when it failed. Those of a clearly slow one are few.
	Samples []float64
	// Error is empty or the class of the failure, Message what was said.
	Error, Message string
}

// LatencySeconds is the lower quartile of the samples; 0 when there are none. What disturbs a machine only adds to a
// sample, and over the time of a recording it comes and goes: of the same kernels, halves of the samples had lower
// quartiles that were half as far apart as their medians.
func (p *Point) LatencySeconds() float64 {
	low, _, _ := stat.Quartiles(p.Samples)
	return low
}

// Set is what was measured of one workload: of each schedule that the part of its space has, once, or of a sample of
// the whole space.
type Set struct {
	Header
	Points []Point
}

// Best is the least latency of the set in seconds; 0 when every candidate failed.
func (s *Set) Best() float64 {
	best := math.Inf(1)
	for k := range s.Points {
		if l := s.Points[k].LatencySeconds(); l > 0 {
			best = min(best, l)
		}
	}
	if math.IsInf(best, 1) {
		return 0
	}
	return best
}

// Candidate is a distinct schedule of a space.
type Candidate struct {
	Point  space.Point
	Origin string
	Digest string
	Trace  []byte
}

// Candidates are the distinct schedules of a space in the order of its knobs, at most limit of them (0 = all): of the
// points that make the same schedule, the first. It is meant for restricted spaces; whole ones have billions of
// points.
func Candidates(s *space.Space, limit int) []Candidate {
	var list []Candidate
	seen := map[string]bool{}
	for p, ok := make(space.Point, len(s.Knobs)), true; ok && (limit == 0 || len(list) < limit); p, ok = s.Next(p) {
		sch, err := s.Apply(p)
		if err != nil {
			continue
		}
		c := Candidate{Point: slices.Clone(p), Origin: s.Format(p), Trace: sch.Trace()}
		c.Digest = schedule.Digest(c.Trace)
		if !seen[c.Digest] {
			seen[c.Digest] = true
			list = append(list, c)
		}
	}
	return list
}

// rounded is a time with four digits, which is finer than any measurement.
func rounded(seconds float64) float64 {
	v, err := strconv.ParseFloat(strconv.FormatFloat(seconds, 'g', 4, 64), 64)
	if err != nil {
		return seconds
	}
	return v
}
