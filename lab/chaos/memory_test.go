package chaos

import (
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// agentMustDrop reports whether the tracker refused a report because its lease is lost.
func agentMustDrop(c *call) bool { return c.reason == wire.ReasonStaleLease }

// checkRefused checks that refused reports are not recorded, unless the same report was sent before and its
// response lost.
func (c *checker) checkRefused() {
	sent := map[string]bool{} // outcomes that may have been accepted
	for _, call := range c.calls {
		if call.accepted() || call.unknown() {
			for _, o := range outcomes(call) {
				sent[o] = true
			}
		}
	}
	for _, j := range c.jobs {
		for _, b := range j.batches {
			for digest, t := range b.trials {
				if t.recorded && !sent[t.outcome] {
					c.violation("batch %s: trial %d (%s) is recorded as %q, which no accepted report says", b.id, t.number, digest, t.outcome)
				}
			}
		}
	}
}

// outcomes returns the signatures of a report's trials.
func outcomes(call *call) (out []string) {
	switch r := call.request.(type) {
	case *tilthv1.ReportBuildRequest:
		for _, o := range r.GetOutcomes() {
			if o.GetError() != tilthv1.ErrorClass_ERROR_CLASS_NONE {
				out = append(out, o.GetMessage())
			}
		}
	case *tilthv1.ReportMeasurementsRequest:
		for _, m := range r.GetMeasurements() {
			out = append(out, signature(m))
		}
	}
	return out
}

// checkMemory checks that acknowledged work is not leased again: neither candidates with an outcome accepted in an
// earlier attempt, nor batches whose artifacts are available. It counts the measurements of trials.
func (c *checker) checkMemory() {
	recorded := map[string]uint32{} // by batch and candidate: first attempt with an accepted outcome
	built := map[string]uint32{}    // by batch
	keep := func(m map[string]uint32, key string, attempt uint32) {
		if before, known := m[key]; !known || attempt < before {
			m[key] = attempt
		}
	}
	measured := map[string]bool{}
	for _, call := range c.calls {
		switch r := call.request.(type) {
		case *tilthv1.ReportMeasurementsRequest:
			for _, m := range r.GetMeasurements() {
				measured[signature(m)] = true
				if call.accepted() && !c.gap.has(call) {
					keep(recorded, r.GetLease().GetSubject()+m.GetCandidate().GetDigest(), r.GetLease().GetAttempt())
				}
			}
		case *tilthv1.ReportBuildRequest:
			if call.accepted() && !c.gap.has(call) && len(r.GetArtifacts()) > 0 && !slices.ContainsFunc(r.GetArtifacts(), func(a *tilthv1.ArtifactRef) bool { return c.artifactLost(call, a.GetDigest()) }) {
				keep(built, r.GetLease().GetSubject(), r.GetLease().GetAttempt())
			}
			for _, o := range r.GetOutcomes() {
				if call.accepted() && !c.gap.has(call) && o.GetError() != tilthv1.ErrorClass_ERROR_CLASS_NONE {
					keep(recorded, r.GetLease().GetSubject()+o.GetCandidate(), r.GetLease().GetAttempt())
				}
			}
		}
	}
	c.Executions = len(measured)
	for _, l := range c.leases {
		if c.gap.has(l.call) {
			continue // the backup resets attempts
		}
		attempt := l.GetLease().GetAttempt()
		if at, is := built[l.GetLease().GetSubject()]; is && l.GetBuild() != nil && attempt > at {
			c.violation("batch %s: attempt %d built it, attempt %d is to build it again", l.GetLease().GetSubject(), at, attempt)
		}
		for _, candidate := range l.candidates() {
			if at, is := recorded[l.GetLease().GetSubject()+candidate.GetDigest()]; is && attempt > at {
				c.violation("batch %s: trial %d was acknowledged under attempt %d and leased again as attempt %d",
					l.GetLease().GetSubject(), candidate.GetTrial(), at, attempt)
			}
		}
	}
}

// checkSessions checks that a new session of an agent invalidates its old ones. After the join, reports of an older
// session are only accepted if they were, or may have been, accepted before.
func (c *checker) checkSessions() {
	type session struct {
		agent string
		end   int64 // time of the join's answer
	}
	sessions := map[string]session{}
	last := map[string][]session{}
	for _, call := range c.calls {
		if r, is := call.answer.(*tilthv1.JoinResponse); is {
			s := session{call.agent, call.end}
			for own := range strings.SplitSeq(r.GetSession(), ".") { // one per shard
				sessions[own] = s
			}
			last[call.agent] = append(last[call.agent], s)
		}
	}
	sent := map[string]bool{}
	for _, call := range c.calls {
		a, is := c.reported(call)
		if !is {
			continue
		}
		key := call.method + tokenKey(a.token)
		s, known := sessions[a.token.GetSession()]
		if known && call.accepted() && !sent[key] {
			for _, newer := range last[s.agent] {
				if newer.end > s.end && newer.end < call.begin {
					c.violation("%v: a report under a session was accepted after %s had joined anew", call, s.agent)
				}
			}
		}
		sent[key] = true
	}
}
