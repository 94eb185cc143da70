package contest

import (
	"sync"

	"github.com/tilth-dev/tilth/lab/bench/replay"
	"github.com/tilth-dev/tilth/tuner"
	"github.com/tilth-dev/tilth/tuner/knowledge"
)

// past holds the knowledge available before a search of each set. Each history is built on first use.
type past struct {
	devices []*device
	// tasks holds the sets that are not replayed, and those of the devices.
	tasks   []*knowledge.Task
	batches Batches
	others  []func() *knowledge.History
	same    []func() (*knowledge.History, error)
}

// earlierTrials and earlierSeed define the earlier search of the same workload. No compared search uses that seed.
const (
	earlierTrials = 128
	earlierSeed   = 1 << 32
)

func newPast(devices []*device, before []*replay.Set, b Batches) *past {
	p := &past{devices: devices, batches: b}
	for _, s := range before {
		p.tasks = append(p.tasks, taskOf(s))
	}
	for _, d := range devices {
		p.tasks = append(p.tasks, taskOf(d.set))
	}
	for k := range devices {
		p.others = append(p.others, sync.OnceValue(func() *knowledge.History {
			return knowledge.NewHistory(devices[k].set.Target, p.othersOf(k))
		}))
		p.same = append(p.same, sync.OnceValues(func() (*knowledge.History, error) { return p.sameAs(k) }))
	}
	return p
}

// job starts a job on a device.
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

// othersOf returns the measurements of other workloads on the same target.
func (p *past) othersOf(k int) []*knowledge.Task {
	var tasks []*knowledge.Task
	own := p.devices[k]
	for _, t := range p.tasks {
		if t.Workload.Digest() != own.digest && t.Target.Fingerprint() == own.set.Target.Fingerprint() {
			tasks = append(tasks, t)
		}
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

// sameAs adds the trials of an earlier search of the same workload.
func (p *past) sameAs(k int) (*knowledge.History, error) {
	d := p.devices[k]
	r, err := d.search(tuner.Options{Seed: earlierSeed, NoTransfer: true}, knowledge.NewJob(nil), earlierTrials, p.batches, false)
	if err != nil {
		return nil, err
	}
	own := &knowledge.Task{Workload: d.set.Workload, Target: d.set.Target, Trials: r.trials}
	return knowledge.NewHistory(d.set.Target, append(p.othersOf(k), own)), nil
}
