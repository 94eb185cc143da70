// Package contest compares searches on recorded sets: how many trials each takes to come near the best schedule that is known.
package contest

import (
	"fmt"
	"math/rand/v2"

	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/replay"
	"github.com/tilth-dev/tilth/tuner"
)

// device answers for a machine what a set knows. It is safe for concurrent use.
type device struct {
	set    *replay.Set
	space  *space.Space
	digest string // of the workload
	points map[string]*replay.Point
	best   float64
}

// newDevice checks that the set covers its space. Points are found by what they make, not by what they are called: schedules that this
// version of the compiler makes alike are one.
func newDevice(set *replay.Set) (*device, error) {
	s, err := set.Space()
	if err != nil {
		return nil, err
	}
	d := &device{set: set, space: s, digest: set.Workload.Digest(), points: map[string]*replay.Point{}, best: set.Best()}
	if d.best == 0 {
		return nil, fmt.Errorf("replay: %s: no candidate of the set was right: record it again", set.Task)
	}
	byOrigin := map[string]*replay.Point{}
	for k := range set.Points {
		byOrigin[set.Points[k].Origin] = &set.Points[k]
	}
	for _, c := range replay.Candidates(s, 0) {
		p, ok := byOrigin[c.Origin]
		if !ok {
			return nil, fmt.Errorf("replay: %s: the set lacks %s, which this version's space has: record it again", set.Task, c.Origin)
		}
		d.points[c.Digest] = p
	}
	return d, nil
}

// measure is what became of a candidate: its latency, or, with a generator, one of its samples. The error is a candidate from outside of the
// space.
func (d *device) measure(c tuner.Candidate, rng *rand.Rand) (tuner.Trial, error) {
	p, ok := d.points[c.Digest]
	if !ok {
		return tuner.Trial{}, fmt.Errorf("replay: %s: %s was proposed, which is not in the set's space", d.set.Task, c.Origin)
	}
	t := tuner.Trial{Digest: c.Digest, Origin: c.Origin, LatencySeconds: p.LatencySeconds(), Failed: p.Error != ""}
	if rng != nil && len(p.Samples) > 0 {
		t.LatencySeconds = p.Samples[rng.IntN(len(p.Samples))]
	}
	return t, nil
}
