package state

import (
	"cmp"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Heartbeat renews an agent's session and the leases that it lists. lost holds leases that the agent should have
// listed but did not; the caller must requeue them with RequeueLost. Deadlines are not stored, so a heartbeat writes
// nothing; they start over after a restart.
func (m *Machine) Heartbeat(req *tilthv1.HeartbeatRequest) (response *tilthv1.HeartbeatResponse, lost LostLeases, err error) {
	a, err := m.live(req.GetSession())
	if err != nil {
		return nil, nil, err
	}
	a.wanted, a.machineHeldBy = req.GetWantedElsewhere(), req.GetMachineHeldBy()
	response = &tilthv1.HeartbeatResponse{
		Dropped: m.renew(a, req.GetLeases()), Calibrate: m.toCalibrate(a), HeartbeatInterval: durationpb.New(m.heartbeatInterval()),
		WorkWaits: m.waitsFor(a),
	}
	return response, m.unheard(a), nil
}

// LostLeases are leases that their agent no longer holds although it is alive.
type LostLeases []*lease

// RequeueLost requeues the work of lost leases.
func (c *Change) RequeueLost(lost LostLeases) {
	for _, l := range lost {
		if l.agent.leases[l.work.subject()] == l { // an earlier lease may have ended its job
			c.takeBack(l)
		}
	}
}

// heartbeatEach is the minimum mean interval between heartbeats across all agents and shards.
const heartbeatEach = time.Millisecond

// heartbeatInterval returns how often agents should report. It grows with the number of agents and shards, but always
// allows several heartbeats per lease timeout.
func (m *Machine) heartbeatInterval() time.Duration {
	crowded := min(time.Duration(len(m.sessions)*max(m.cfg.Shards, 1))*heartbeatEach, m.cfg.LeaseTimeout/3)
	return max(m.cfg.HeartbeatInterval, crowded)
}

// renew extends the listed leases and returns the tokens that are not in force or belong to another agent.
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

// unheard returns the leases that the agent has stopped listing although it is alive: the response that granted them
// was lost, or the work ended without a report. A heartbeat may cross that response on the wire, so a lease must be
// missing from two heartbeats, at least two intervals after it was last listed.
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

// takeBack requeues the work of a lost lease. A lost response counts as no failure.
func (c *Change) takeBack(l *lease) {
	if l.listed {
		c.failAttempt(l.work, tilthv1.ErrorClass_ERROR_CLASS_FARM_INFRA, l.agent.spec.GetName()+" ended it without a report")
		return
	}
	c.log.Warn("lease did not reach its agent: granting it again", "subject", l.work.subject(), "agent", l.agent.spec.GetName())
	c.giveBack(l.work, "never received the lease")
}
