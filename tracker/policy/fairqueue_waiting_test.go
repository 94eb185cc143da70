package policy_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/tracker/policy"
)

// burst is a simulated job: batches that all become ready at once.
type burst struct {
	owner, job string
	weight     float64
	at         float64 // seconds
	batches    int
}

// batch is a waiting batch of a burst.
type batch struct {
	*burst
	since float64
}

// fairqueuePolicy selects the next batch to measure.
type fairqueuePolicy interface {
	push(b batch)
	pop() (batch, func(seconds float64), bool)
}

// Parameters of the simulation: the number of devices and the duration of a batch.
const (
	devices      = 8
	batchSeconds = 20.0
)

// play runs the simulation and returns the waiting time of each batch, by job.
func play(p fairqueuePolicy, bursts []*burst) map[string][]float64 {
	type event struct {
		at   float64
		done func(seconds float64) // nil = start of a burst
		b    *burst
	}
	var events []event
	for _, b := range bursts {
		events = append(events, event{at: b.at, b: b})
	}
	waits := map[string][]float64{}
	idle := devices
	for len(events) > 0 {
		next := 0
		for i := range events {
			if events[i].at < events[next].at {
				next = i
			}
		}
		e := events[next]
		events = slices.Delete(events, next, next+1)
		if e.done != nil {
			e.done(batchSeconds)
			idle++
		} else {
			for range e.b.batches {
				p.push(batch{e.b, e.at})
			}
		}
		for idle > 0 {
			b, done, ok := p.pop()
			if !ok {
				break
			}
			idle--
			waits[b.job] = append(waits[b.job], e.at-b.since)
			events = append(events, event{at: e.at + batchSeconds, done: done})
		}
	}
	return waits
}

// inOrder serves batches first in, first out.
type inOrder struct{ waiting []batch }

func (p *inOrder) push(b batch) { p.waiting = append(p.waiting, b) }

func (p *inOrder) pop() (b batch, done func(float64), ok bool) {
	if len(p.waiting) == 0 {
		return b, nil, false
	}
	b, p.waiting = p.waiting[0], p.waiting[1:]
	return b, func(float64) {}, true
}

// jobsTakeTurns serves a batch of each job in turn, regardless of owners.
type jobsTakeTurns struct {
	jobs    []string
	waiting map[string][]batch
}

func (p *jobsTakeTurns) push(b batch) {
	if len(p.waiting[b.job]) == 0 {
		p.jobs = append(p.jobs, b.job)
	}
	p.waiting[b.job] = append(p.waiting[b.job], b)
}

func (p *jobsTakeTurns) pop() (b batch, done func(float64), ok bool) {
	if len(p.jobs) == 0 {
		return b, nil, false
	}
	job := p.jobs[0]
	b, p.waiting[job] = p.waiting[job][0], p.waiting[job][1:]
	p.jobs = p.jobs[1:]
	if len(p.waiting[job]) > 0 {
		p.jobs = append(p.jobs, job)
	}
	return b, func(float64) {}, true
}

// fair uses the fair queue under test.
type fair struct{ *policy.Queue[batch] }

func (p fair) push(b batch) {
	p.Push(policy.Flow{Owner: b.owner, Job: b.job, OwnerWeight: b.weight}, b, false)
}

func (p fair) pop() (batch, func(float64), bool) {
	b, charge, ok := p.Pop(policy.Filter[batch]{})
	if !ok {
		return b, nil, false
	}
	charge.Set(1) // unknown yet
	return b, func(seconds float64) {
		charge.Set(seconds)
		charge.End()
	}, true
}

// small returns a job of 16 batches that starts ten minutes after the job that keeps the farm busy.
func small(weight float64) *burst {
	return &burst{owner: "eva", job: "small", weight: weight, at: 605, batches: 16}
}

func huge() []*burst { return []*burst{{owner: "ana", job: "huge", batches: 5000}} }

func many() (out []*burst) {
	for i := range 50 {
		out = append(out, &burst{owner: "ana", job: fmt.Sprint("ana's ", i), batches: 100})
	}
	return out
}

// row formats the small job's median waiting time for its first batch and for its last.
func row(what, how string, p fairqueuePolicy, bursts []*burst) (string, []float64) {
	waits := play(p, bursts)["small"]
	slices.Sort(waits)
	return fmt.Sprintf("| %s | %s | %.0f s | %.0f s | %.0f s |",
		what, how, waits[0], waits[len(waits)/2], waits[len(waits)-1]), waits
}

// TestHugeJobDoesNotStarveASmallOne simulates a busy farm and compares the waiting times with testdata/waits.md.
func TestHugeJobDoesNotStarveASmallOne(t *testing.T) {
	doc, err := os.ReadFile("testdata/waits.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		busy   string
		bursts func() []*burst
		how    string
		policy fairqueuePolicy
		weight float64
		last   float64 // maximum waiting time of the last batch
	}{
		{"one job of 5000 batches", huge, "first come, first served", &inOrder{}, 1, 1e9},
		{"", huge, "jobs take turns", &jobsTakeTurns{waiting: map[string][]batch{}}, 1, 1e9},
		{"", huge, "fair", fair{policy.NewQueue[batch](60)}, 1, 100},
		{"50 jobs of 100 batches", many, "first come, first served", &inOrder{}, 1, 1e9},
		{"", many, "jobs take turns", &jobsTakeTurns{waiting: map[string][]batch{}}, 1, 1e9},
		{"", many, "fair", fair{policy.NewQueue[batch](60)}, 1, 100},
		{"", many, "fair, with three times the weight", fair{policy.NewQueue[batch](60)}, 3, 80},
	} {
		line, waits := row(c.busy, c.how, c.policy, append(c.bursts(), small(c.weight)))
		t.Log(line)
		if waits[len(waits)-1] > c.last {
			t.Errorf("the last batch waits too long:\n%s", line)
		}
		if !strings.Contains(string(doc), line+"\n") {
			t.Errorf("testdata/waits.md does not have the line\n%s", line)
		}
	}
}
