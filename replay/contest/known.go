package contest

import (
	"sync"

	"github.com/tilth-dev/tilth/replay"
	"github.com/tilth-dev/tilth/tuner"
	"github.com/tilth-dev/tilth/tuner/knowledge"
)

// past is what may be known before a search of each set begins; each history is made once, when it is first wanted.
type past struct {
	devices []*device
	batches Batches
	others  []func() *knowledge.History
	same    []func() (*knowledge.History, error)
}

// earlierTrials is how long the earlier search of the same workload was, and earlierSeed its seed, which no compared search has.
const (
	earlierTrials = 128
	earlierSeed   = 1 << 32
)

func newPast(devices []*device, b Batches) *past {
	p := &past{devices: devices, batches: b}
	for k := range devices {
		p.others = append(p.others, sync.OnceValue(func() *knowledge.History {
			return knowledge.NewHistory(devices[k].set.Target, p.othersOf(k))
		}))
		p.same = append(p.same, sync.OnceValues(func() (*knowledge.History, error) { return p.sameAs(k) }))
	}
	return p
}

// job begins a job on a device.
func (p *past) job(k int, known Known) (*knowledge.Job, error) {
	switch known {
	case Others:
		return knowledge.NewJob(p.others[k]()), nil
	case Same:
		h, err := p.same[k]()
		return knowledge.NewJob(h), err
	}
	return knowledge.NewJob(nil), nil
}

// othersOf is what was measured of other workloads on the same target.
func (p *past) othersOf(k int) []*knowledge.Task {
	var tasks []*knowledge.Task
	own := p.devices[k]
	for _, d := range p.devices {
		if d.digest == own.digest || d.set.Target.Fingerprint() != own.set.Target.Fingerprint() {
			continue
		}
		tasks = append(tasks, taskOf(d.set))
	}
	return tasks
}

func taskOf(s *replay.Set) *knowledge.Task {
	t := &knowledge.Task{Workload: s.Workload, Target: s.Target}
	for k := range s.Points {
		p := &s.Points[k]
		t.Trials = append(t.Trials, knowledge.Trial{Origin: p.Origin, LatencySeconds: p.LatencySeconds()})
	}
	return t
}

// sameAs adds what an earlier search found.
func (p *past) sameAs(k int) (*knowledge.History, error) {
	d := p.devices[k]
	r, err := d.search(tuner.Options{Seed: earlierSeed, NoTransfer: true}, knowledge.NewJob(nil), earlierTrials, p.batches, false)
	if err != nil {
		return nil, err
	}
	own := &knowledge.Task{Workload: d.set.Workload, Target: d.set.Target, Trials: r.trials}
	return knowledge.NewHistory(d.set.Target, append(p.othersOf(k), own)), nil
}
