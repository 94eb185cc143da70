package chaos

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// A subject (a job, a batch) is held by one agent at a time. The model consists of the agents' observations:
// leases that arrived, with growing attempts, and reports, which are accepted only under the current lease or
// if the same report was accepted before. The loss of a lease is not observed, but a lease with a refused
// report is lost for good.

// leaseState is the state of a subject. It is compared with ==.
type leaseState struct {
	attempt uint32 // of the latest delivered lease
	session string
	lost    bool   // a report under it was refused
	settled string // attempts with an accepted final report, each as " N "
}

// act is an event of a subject: a delivered lease or a report.
type act struct {
	token *tilthv1.LeaseToken
	grant bool
	last  bool // the report ends its lease if accepted
}

// outcome of an act.
type outcome int

const (
	accepted outcome = iota
	refusedStale
	notKnown
)

func (s leaseState) isSettled(attempt uint32) bool {
	return strings.Contains(s.settled, fmt.Sprintf(" %d ", attempt))
}

func (s leaseState) holds(t *tilthv1.LeaseToken) bool {
	return !s.lost && s.attempt == t.GetAttempt() && s.session == t.GetSession() && !s.isSettled(t.GetAttempt())
}

// step returns the possible next states, or nil if the event violates the model.
func (s leaseState) step(a act, o outcome) []leaseState {
	if a.grant {
		if a.token.GetAttempt() <= s.attempt {
			return nil
		}
		s.attempt, s.session, s.lost = a.token.GetAttempt(), a.token.GetSession(), false
		return []leaseState{s}
	}
	took := s
	if a.last {
		took.settled += fmt.Sprintf(" %d ", a.token.GetAttempt())
	}
	switch {
	case o == accepted && s.isSettled(a.token.GetAttempt()):
		return []leaseState{s}
	case o == accepted && s.holds(a.token):
		return []leaseState{took}
	case o == accepted:
		return nil
	case o == refusedStale && s.isSettled(a.token.GetAttempt()):
		return nil
	case o == refusedStale:
		if s.attempt == a.token.GetAttempt() {
			s.lost = true
		}
		return []leaseState{s}
	case s.holds(a.token):
		return []leaseState{s, took}
	}
	return []leaseState{s}
}

var leaseModel = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{leaseState{}} },
	Step: func(state, input, output any) (out []any) {
		for _, s := range state.(leaseState).step(input.(act), output.(outcome)) {
			out = append(out, s)
		}
		return out
	},
}).ToModel()

// maxTime limits the check of one subject.
const maxTime = 10 * time.Second

// checkLeases checks that each subject's history is consistent with one holder at a time.
func (c *checker) checkLeases() {
	histories := map[string][]porcupine.Operation{}
	c.measured = map[string]map[string]bool{}
	add := func(call *call, a act, o outcome) {
		id := a.token.GetSubject()
		histories[id] = append(histories[id], porcupine.Operation{Input: a, Output: o, Call: call.begin, Return: call.end})
	}
	for _, call := range c.calls {
		if c.gap.has(call) {
			continue
		}
		if r, is := call.answer.(*tilthv1.LeaseWorkResponse); is && r.GetLease() != nil {
			add(call, act{token: r.GetLease(), grant: true}, accepted)
		}
		if a, is := c.reported(call); is {
			switch {
			case c.ofLostLife(call, a.token): // see checkLives
			case call.accepted():
				add(call, a, accepted)
			case call.unknown():
				add(call, a, notKnown)
			case agentMustDrop(call):
				add(call, a, refusedStale)
			}
		}
	}
	subjects := make([]string, 0, len(histories))
	for id := range histories {
		subjects = append(subjects, id)
	}
	slices.Sort(subjects)
	for _, id := range subjects {
		switch porcupine.CheckOperationsTimeout(leaseModel, histories[id], maxTime) {
		case porcupine.Illegal:
			c.violation("%s: was in two hands at once: %s", id, describe(histories[id]))
		case porcupine.Unknown:
			c.Undecided++
		}
	}
}

// reported returns the act of a call that reports under a lease.
func (c *checker) reported(call *call) (act, bool) {
	switch r := call.request.(type) {
	case *tilthv1.ProposeBatchRequest:
		return act{token: r.GetLease()}, true
	case *tilthv1.FinishJobRequest:
		return act{token: r.GetLease(), last: true}, true
	case *tilthv1.ReportBuildRequest:
		return act{token: r.GetLease(), last: true}, true
	case *tilthv1.ReportMeasurementsRequest:
		return act{token: r.GetLease(), last: r.GetInfraError() != 0 || c.completes(r)}, true
	}
	return act{}, false
}

// completes reports whether a report completes its lease, because everything leased has been reported.
func (c *checker) completes(r *tilthv1.ReportMeasurementsRequest) bool {
	key := tokenKey(r.GetLease())
	reported := c.measured[key]
	if reported == nil {
		reported = map[string]bool{}
		c.measured[key] = reported
	}
	for _, m := range r.GetMeasurements() {
		reported[m.GetCandidate().GetDigest()] = true
	}
	candidates := c.leases[key].candidates()
	for _, candidate := range candidates {
		if !reported[candidate.GetDigest()] {
			return false
		}
	}
	return len(candidates) > 0
}

func describe(history []porcupine.Operation) string {
	var out []string
	for _, o := range history {
		a := o.Input.(act)
		what := "report"
		if a.grant {
			what = "lease"
		}
		out = append(out, fmt.Sprintf("%s %d of %.6s last=%v outcome=%d [%d %d]", what, a.token.GetAttempt(), a.token.GetSession(), a.last, o.Output, o.Call, o.Return))
	}
	return strings.Join(out, ", ")
}
