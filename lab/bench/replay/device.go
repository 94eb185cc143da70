package replay

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/tuner"
	"github.com/tilth-dev/tilth/tuner/transfer"
)

// device replays the measurements of a set. It is safe for concurrent use.
type device struct {
	set      *Set
	space    *searchspace.Space
	features backend.Features
	digest   string // of the workload
	points   map[string]*Point
	best     float64
	// unknown counts the schedules of the space that the set lacks.
	unknown int
}

// maxUnknown is the maximum share of a space that may be missing from its set, because rules change.
const maxUnknown = 0.05

// newDevice checks that the set covers its space. It matches points by the schedules that they produce: schedules
// that this version of the compiler treats alike are one.
func newDevice(set *Set) (*device, error) {
	if set.Sampled {
		return nil, fmt.Errorf("%s: this is a sample, not all of a part of the space: record the task without --sample, or give the file with --known", set.Task)
	}
	s, err := set.Space()
	if err != nil {
		return nil, err
	}
	by, err := registry.Of(set.Target)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", set.Task, err)
	}
	d := &device{set: set, space: s, features: by.Features(), digest: set.Workload.Digest(), points: map[string]*Point{}}
	byOrigin := map[string]*Point{}
	for k := range set.Points {
		byOrigin[set.Points[k].Origin] = &set.Points[k]
	}
	for _, c := range Candidates(s, 0) {
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
	case float64(d.unknown) > maxUnknown*float64(known+d.unknown):
		return nil, fmt.Errorf("%s: the set lacks %d of %d schedules that this version's space has: record it again", set.Task, d.unknown, known+d.unknown)
	case d.best == 0:
		return nil, fmt.Errorf("%s: no candidate of the set was right: record it again", set.Task)
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

// share returns the speed of a schedule relative to the best known. It is 0 if the schedule failed or is not in the
// set.
func (d *device) share(s *schedule.Schedule) float64 {
	p := d.points[schedule.Digest(s.Trace())]
	if p == nil || p.Error != "" {
		return 0
	}
	return d.best / p.LatencySeconds()
}

// defaultShare returns the share of the best throughput that the default schedule reaches.
func (d *device) defaultShare() float64 {
	s, err := d.space.Apply(d.space.Default())
	if err != nil {
		return 0
	}
	return d.share(s)
}

// guessShare returns the share that the schedule guessed from other workloads reaches, without a trial.
func (p *past) guessShare(k int) (float64, error) {
	guesses, err := p.others[k]().Predictions(p.devices[k].space)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", p.devices[k].set.Task, err)
	}
	if len(guesses) == 0 {
		return p.devices[k].defaultShare(), nil
	}
	best := slices.MinFunc(guesses, func(a, b transfer.Prediction) int { return cmp.Compare(a.Seconds, b.Seconds) })
	return p.devices[k].share(best.Schedule), nil
}

// past holds the knowledge available before a search of each set. Each history is built on first use.
type past struct {
	devices []*device
	// tasks holds the sets that are not replayed, and those of the devices.
	tasks   []*transfer.Task
	batches Batches
	others  []func() *transfer.History
	same    []func() (*transfer.History, error)
}

// earlierTrials and earlierSeed define the earlier search of the same workload. No compared search uses that seed.
const (
	earlierTrials = 128
	earlierSeed   = 1 << 32
)

func newPast(devices []*device, before []*Set, b Batches) *past {
	p := &past{devices: devices, batches: b}
	for _, s := range before {
		p.tasks = append(p.tasks, taskOf(s))
	}
	for _, d := range devices {
		p.tasks = append(p.tasks, taskOf(d.set))
	}
	for k := range devices {
		p.others = append(p.others, sync.OnceValue(func() *transfer.History {
			return transfer.NewHistory(devices[k].set.Target, p.othersOf(k))
		}))
		p.same = append(p.same, sync.OnceValues(func() (*transfer.History, error) { return p.sameAs(k) }))
	}
	return p
}

// job starts a job on a device.
func (p *past) job(k int, known Known) (*transfer.Job, error) {
	switch known {
	case Others:
		return transfer.NewJob(p.others[k]()), nil
	case Same:
		h, err := p.same[k]()
		return transfer.NewJob(h), err
	}
	return transfer.NewJob(nil), nil
}

// othersOf returns the measurements of other workloads on the same target.
func (p *past) othersOf(k int) []*transfer.Task {
	var tasks []*transfer.Task
	own := p.devices[k]
	for _, t := range p.tasks {
		if t.Workload.Digest() != own.digest && t.Target.Fingerprint() == own.set.Target.Fingerprint() {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

func taskOf(s *Set) *transfer.Task {
	t := &transfer.Task{Workload: s.Workload, Target: s.Target}
	for k := range s.Points {
		p := &s.Points[k]
		t.Trials = append(t.Trials, transfer.Trial{Origin: p.Origin, LatencySeconds: p.LatencySeconds()})
	}
	return t
}

// sameAs adds the trials of an earlier search of the same workload.
func (p *past) sameAs(k int) (*transfer.History, error) {
	d := p.devices[k]
	r, err := d.search(tuner.Options{Seed: earlierSeed, NoTransfer: true}, transfer.NewJob(nil), earlierTrials, p.batches, false)
	if err != nil {
		return nil, err
	}
	own := &transfer.Task{Workload: d.set.Workload, Target: d.set.Target, Trials: r.trials}
	return transfer.NewHistory(d.set.Target, append(p.othersOf(k), own)), nil
}
