package contest

import (
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/lab/bench/replay"
	"github.com/tilth-dev/tilth/tuner"
)

// device replays the measurements of a set. It is safe for concurrent use.
type device struct {
	set      *replay.Set
	space    *space.Space
	features backend.Features
	digest   string // of the workload
	points   map[string]*replay.Point
	best     float64
	// unknown counts the schedules of the space that the set lacks.
	unknown int
	// codes caches the instruction counts by digest.
	codes sync.Map
}

// mostUnknown is the maximum share of a space that may be missing from its set, because rules change.
const mostUnknown = 0.05

// newDevice checks that the set covers its space. It matches points by the schedules that they produce: schedules
// that this version of the compiler treats alike are one.
func newDevice(set *replay.Set) (*device, error) {
	if set.Sampled {
		return nil, fmt.Errorf("replay: %s: this is a sample, not all of a part of the space: record the task without --sample, or give the file with --known", set.Task)
	}
	s, err := set.Space()
	if err != nil {
		return nil, err
	}
	by, err := registry.Of(set.Target)
	if err != nil {
		return nil, fmt.Errorf("replay: %s: %w", set.Task, err)
	}
	d := &device{set: set, space: s, features: by.Features(), digest: set.Workload.Digest(), points: map[string]*replay.Point{}}
	byOrigin := map[string]*replay.Point{}
	for k := range set.Points {
		byOrigin[set.Points[k].Origin] = &set.Points[k]
	}
	for _, c := range replay.Candidates(s, 0) {
		p, ok := byOrigin[c.Origin]
		if !ok {
			d.unknown++
			continue
		}
		d.points[c.Digest] = p
		if l := p.LatencySeconds(); l > 0 && (d.best == 0 || l < d.best) {
			d.best = l
		}
	}
	switch known := len(d.points); {
	case float64(d.unknown) > mostUnknown*float64(known+d.unknown):
		return nil, fmt.Errorf("replay: %s: the set lacks %d of %d schedules that this version's space has: record it again", set.Task, d.unknown, known+d.unknown)
	case d.best == 0:
		return nil, fmt.Errorf("replay: %s: no candidate of the set was right: record it again", set.Task)
	}
	return d, nil
}

// measure returns a candidate's latency or, with a generator, one of its samples. Candidates missing from the set
// fail.
func (d *device) measure(c tuner.Candidate, rng *rand.Rand) tuner.Trial {
	t := tuner.Trial{Digest: c.Digest, Origin: c.Origin, Failed: true}
	if p, ok := d.points[c.Digest]; ok {
		t.LatencySeconds, t.Failed = p.LatencySeconds(), p.Error != ""
		if rng != nil && len(p.Samples) > 0 {
			t.LatencySeconds = p.Samples[rng.IntN(len(p.Samples))]
		}
	}
	return t
}

// code returns the approximate number of instructions in a candidate's source.
func (d *device) code(c tuner.Candidate) float64 {
	if v, ok := d.codes.Load(c.Digest); ok {
		return v.(float64)
	}
	s, err := d.space.Apply(c.Point)
	if err != nil { // no search proposes that
		return 0
	}
	code := d.features.Code(s, d.space.Target)
	d.codes.Store(c.Digest, code)
	return code
}
