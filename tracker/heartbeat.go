package tracker

import (
	"cmp"
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Heartbeat implements tilthv1.AgentServiceServer. Deadlines are not stored: after a restart they begin anew.
func (t *Tracker) Heartbeat(ctx context.Context, req *tilthv1.HeartbeatRequest) (*tilthv1.HeartbeatResponse, error) {
	t.mu.Lock()
	a, err := t.live(req.GetSession())
	if err != nil {
		t.mu.Unlock()
		return nil, err
	}
	response := &tilthv1.HeartbeatResponse{
		Dropped: t.renew(a, req.GetLeases()), Calibrate: t.toCalibrate(a), HeartbeatInterval: durationpb.New(t.heartbeatInterval()),
	}
	unheard := t.unheard(a)
	if len(unheard) == 0 {
		t.mu.Unlock()
		return response, nil
	}
	pending, _ := t.apply(func(c *change) error {
		for _, l := range unheard {
			if a.leases[l.work.subject()] == l { // its job may have ended with the one before
				c.takeBack(l)
			}
		}
		return nil
	})
	t.mu.Unlock()
	return response, t.wait(ctx, pending)
}

// heartbeatEach is the least time between two heartbeats of all agents together, in the mean.
const heartbeatEach = time.Millisecond

// heartbeatInterval is how often agents are asked to report: the more there are the less often, but always several
// times before they are taken for gone.
func (t *Tracker) heartbeatInterval() time.Duration {
	crowded := min(time.Duration(len(t.sessions))*heartbeatEach, t.cfg.LeaseTimeout/3)
	return max(t.cfg.HeartbeatInterval, crowded)
}

// renew extends the leases listed by their agent, and returns those that are not in force, or another's.
func (t *Tracker) renew(a *agent, tokens []*tilthv1.LeaseToken) (dropped []*tilthv1.LeaseToken) {
	for _, token := range tokens {
		l := t.leases[token.GetSubject()]
		if t.lookUp(token) == nil || l.agent != a {
			dropped = append(dropped, token)
			continue
		}
		l.listed, l.seen, l.missed = true, a.heard, -1
		l.deadline = later(l.deadline, a.heard.Add(t.cfg.LeaseTimeout))
	}
	return dropped
}

// unheard returns the leases that the agent, though alive, has not listed for a while. It does not hold them: it never
// got the answer that granted them, or it ended without a report. One heartbeat may cross the answer on the way, so
// two are heard; and an answer gets the time of two, however fast they come.
func (t *Tracker) unheard(a *agent) (out []*lease) {
	for _, l := range a.leases {
		l.missed++
		if l.missed >= 2 && a.heard.Sub(l.seen) >= 2*t.heartbeatInterval() {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b *lease) int { return cmp.Compare(a.work.subject(), b.work.subject()) })
	return out
}

// takeBack requeues an unheard lease; an answer that was lost is nobody's failure.
func (c *change) takeBack(l *lease) {
	if l.listed {
		c.lose(l.work, tilthv1.ErrorClass_ERROR_CLASS_FARM_INFRA, l.agent.spec.GetName()+" ended it without a report")
		return
	}
	c.log.Warn("lease never arrived, granting it anew", "subject", l.work.subject(), "agent", l.agent.spec.GetName())
	c.giveBack(l.work, "never got it")
}
