package state

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"pgregory.net/rapid"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/policy"
)

// world is the environment of a machine: clocks, artifacts, and the observers of its effects.
type world struct {
	*rapid.T
	m         *Machine
	now       time.Time
	artifacts files
	requests  map[string]string      // job ids by request
	prepared  map[string]*Submission // by request: submissions that have queried the store
	waiting   map[*Waiter]bool

	// State derived from the effects: the last event of each job, the batch of each proposed trial by job, the number
	// of records of each trial, dead letters, and the last attempt of each subject.
	events   map[string]uint64
	proposed map[string]map[string]string
	trials   map[string]int
	dead     map[string]bool
	attempts map[string]uint32
	held     []*tilthv1.LeaseWorkResponse // granted leases, valid or not
}

// files holds artifacts by digest with their numbers of pins.
type files struct {
	sizes map[string]int64
	pins  map[string]int
}

func (f files) Stat(digest string) (bool, int64) {
	size, is := f.sizes[digest]
	return is, size
}

func (f files) Pin(digests ...string) {
	for _, d := range digests {
		f.pins[d]++
	}
}

func (f files) Unpin(digests ...string) {
	for _, d := range digests {
		if f.pins[d]--; f.pins[d] == 0 {
			delete(f.pins, d)
		}
	}
}

func newWorld(t *rapid.T) *world {
	w := &world{
		T: t, now: time.Unix(1_000_000, 0), artifacts: files{map[string]int64{}, map[string]int{}},
		requests: map[string]string{}, prepared: map[string]*Submission{}, waiting: map[*Waiter]bool{},
		events: map[string]uint64{}, proposed: map[string]map[string]string{}, trials: map[string]int{}, dead: map[string]bool{}, attempts: map[string]uint32{},
	}
	clock := func() time.Time { return w.now }
	w.m = New(Config{
		Logger: slog.New(slog.DiscardHandler), Now: clock, Clock: clock, Artifacts: w.artifacts, Generation: "life",
		Requested:         w.requested,
		HeartbeatInterval: 5 * time.Second, LeaseTimeout: 30 * time.Second, Grace: time.Minute, OutageWait: time.Minute,
		MaxAttempts: rapid.Uint32Range(1, 4).Draw(t, "attempts"), MaxRetry: time.Minute,
		FirstRetry: rapid.SampledFrom([]time.Duration{-1, time.Second}).Draw(t, "first retry"), Cooldown: policy.Cooldown{First: time.Second, Max: time.Minute},
		SearchTurn: time.Minute, Keep: policy.Retention{Jobs: 2}.WithDefaults(), Limits: Limits{}.WithDefaults(), Drift: policy.Drift{}.WithDefaults(),
	})
	return w
}

// requested returns the job of a request, like the store.
func (w *world) requested(owner, id string) (string, error) {
	if job, is := w.requests[owner+"/"+id]; is {
		return job, nil
	}
	return "", records.ErrNotFound
}

// apply makes a change, which may be refused, and applies its effects.
func (w *world) apply(step func(c *Change) error) error {
	_, err := w.m.Apply(step)
	w.carryOut()
	return err
}

// do makes a change.
func (w *world) do(step func(c *Change)) {
	_ = w.apply(func(c *Change) error {
		step(c)
		return nil
	})
}

// carryOut applies the machine's effects.
func (w *world) carryOut() {
	for _, e := range w.m.Effects() {
		for job, events := range e.Events {
			w.hear(job, events)
		}
		for _, waiter := range e.Void {
			w.end(waiter)
		}
		if e.Grant == nil {
			continue
		}
		if e.Grant.To != nil {
			w.end(e.Grant.To)
		}
		token := e.Grant.Response.GetLease()
		if last := w.attempts[token.GetSubject()]; token.GetAttempt() <= last {
			w.Fatalf("attempt %d at %s comes after %d", token.GetAttempt(), token.GetSubject(), last)
		}
		w.attempts[token.GetSubject()] = token.GetAttempt()
		w.held = append(w.held, e.Grant.Response)
	}
}

// end ends a waiting request.
func (w *world) end(waiter *Waiter) {
	if !w.waiting[waiter] {
		w.Fatal("a request is answered that does not wait")
	}
	delete(w.waiting, waiter)
}

func (w *world) hear(job string, events []*tilthv1.JobEvent) {
	for _, e := range events {
		if w.events[job]++; e.GetSequence() != w.events[job] {
			w.Fatalf("event %d of %s comes where %d is due", e.GetSequence(), job, w.events[job])
		}
		if t := e.GetTrial(); t != nil {
			trial := trialOf(job, t.GetTaskIndex(), t.GetMeasurement().GetCandidate())
			if w.trials[trial]++; w.trials[trial] > 1 {
				w.Fatalf("trial %s is recorded twice", trial)
			}
		}
		if p := e.GetProposed(); p != nil {
			if w.proposed[job] == nil {
				w.proposed[job] = map[string]string{}
			}
			for _, c := range p.GetCandidates() {
				w.proposed[job][trialOf(job, p.GetTaskIndex(), c)] = p.GetBatchId()
			}
		}
		if d := e.GetDeadLetter(); d != nil {
			w.dead[d.GetBatchId()] = true
		}
	}
}

func trialOf(job string, task uint32, c *tilthv1.Candidate) string {
	return fmt.Sprintf("%s/%d/%d", job, task, c.GetTrial())
}

// signs selects which agents send heartbeats.
type signs int

const (
	silent    signs = iota // none
	forgetful              // without their leases
	lively                 // with all leases
)

// pass advances the time tick by tick while agents send heartbeats.
func (w *world) pass(d time.Duration, s signs) {
	for step := time.Second; d > 0; d -= step {
		w.now = w.now.Add(step)
		if s != silent {
			for _, session := range w.sessions() {
				var listed []*tilthv1.LeaseToken
				if s == lively {
					listed = w.leasesOf(session)
				}
				_, lost, err := w.m.Heartbeat(&tilthv1.HeartbeatRequest{Session: session, Leases: listed})
				if err != nil {
					w.Fatal(err)
				}
				w.do(func(c *Change) { c.RequeueLost(lost) })
			}
		}
		w.do((*Change).Expire)
		w.do((*Change).ChargeTime)
		w.do((*Change).EndTurns)
		w.do((*Change).DropAged)
		w.m.ServeWaiters()
		w.carryOut()
	}
}

func (w *world) sessions() (all []string) {
	for session := range w.m.sessions {
		all = append(all, session)
	}
	slices.Sort(all)
	return all
}

// leasesOf returns all leases ever granted in a session.
func (w *world) leasesOf(session string) (tokens []*tilthv1.LeaseToken) {
	for _, r := range w.held {
		if r.GetLease().GetSession() == session {
			tokens = append(tokens, r.GetLease())
		}
	}
	return tokens
}
