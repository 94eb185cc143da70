package state

import (
	"cmp"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Heartbeat notes the signs of life of an agent and of the leases that it lists. lost are leases that it does not list
// though it should: they are to be taken back. Deadlines are not stored, so that a heartbeat costs the store nothing:
// after a restart they begin anew.
// wanted says that work for the agent waits in another shard.
func (m *Machine) Heartbeat(session string, listed []*tilthv1.LeaseToken, wanted bool) (response *tilthv1.HeartbeatResponse, lost Lost, err error) {
	a, err := m.live(session)
	if err != nil {
		return nil, nil, err
	}
	a.wanted = wanted
	response = &tilthv1.HeartbeatResponse{
		Dropped: m.renew(a, listed), Calibrate: m.toCalibrate(a), HeartbeatInterval: durationpb.New(m.heartbeatInterval()),
		WorkWaits: m.waitsFor(a),
	}
	return response, m.unheard(a), nil
}

// Lost are leases that their agent, though alive, does not hold.
type Lost []*lease

// TakeBack takes lost leases back.
func (c *Change) TakeBack(lost Lost) {
	for _, l := range lost {
		if l.agent.leases[l.work.subject()] == l { // its job may have ended with the one before
			c.takeBack(l)
		}
	}
}

// heartbeatEach is the least time between two heartbeats of all agents to all shards together, in the mean.
const heartbeatEach = time.Millisecond

// heartbeatInterval is how often agents are asked to report: the more there are, and the more shards each of them
// reports to, the less often, but always several times before they are taken for gone.
func (m *Machine) heartbeatInterval() time.Duration {
	crowded := min(time.Duration(len(m.sessions)*max(m.cfg.Shards, 1))*heartbeatEach, m.cfg.LeaseTimeout/3)
	return max(m.cfg.HeartbeatInterval, crowded)
}

// renew extends the leases listed by their agent, and returns those that are not in force, or another's.
func (m *Machine) renew(a *agent, tokens []*tilthv1.LeaseToken) (dropped []*tilthv1.LeaseToken) {
	for _, token := range tokens {
		l := m.leases[token.GetSubject()]
		if m.lookUp(token) == nil || l.agent != a {
			dropped = append(dropped, token)
			continue
		}
		l.listed, l.seen, l.missed = true, a.heard, -1
		l.deadline = later(l.deadline, a.heard.Add(m.cfg.LeaseTimeout))
	}
	return dropped
}

// unheard returns the leases that the agent, though alive, has not listed for a while. It does not hold them: it never
// got the answer that granted them, or it ended without a report. One heartbeat may cross the answer on the way, so
// two are heard; and an answer gets the time of two, however fast they come.
func (m *Machine) unheard(a *agent) (out []*lease) {
	for _, l := range a.leases {
		l.missed++
		if l.missed >= 2 && a.heard.Sub(l.seen) >= 2*m.heartbeatInterval() {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b *lease) int { return cmp.Compare(a.work.subject(), b.work.subject()) })
	return out
}

// takeBack requeues an unheard lease; an answer that was lost is nobody's failure.
func (c *Change) takeBack(l *lease) {
	if l.listed {
		c.lose(l.work, tilthv1.ErrorClass_ERROR_CLASS_FARM_INFRA, l.agent.spec.GetName()+" ended it without a report")
		return
	}
	c.log.Warn("lease never arrived, granting it anew", "subject", l.work.subject(), "agent", l.agent.spec.GetName())
	c.giveBack(l.work, "never got it")
}
