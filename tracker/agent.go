package tracker

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// agent is an agent that joined at some time.
type agent struct {
	spec     *tilthv1.AgentSpec
	session  string
	joined   *timestamppb.Timestamp
	seen     time.Time
	deadline time.Time
	// The session is void: the agent left, or was not heard of until its deadline.
	gone      bool
	leases    map[string]*lease // by subject
	waiters   map[*waiter]struct{}
	completed uint64
	failed    uint64
}

func (a *agent) proto() *tilthv1.Agent {
	state := tilthv1.AgentState_AGENT_STATE_IDLE
	switch {
	case a.gone:
		state = tilthv1.AgentState_AGENT_STATE_GONE
	case len(a.leases) > 0:
		state = tilthv1.AgentState_AGENT_STATE_BUSY
	}
	return &tilthv1.Agent{
		Spec: a.spec, Session: a.session, State: state, JoinedAt: a.joined, SeenAt: timestamppb.New(a.seen),
		Completed: a.completed, Failed: a.failed,
	}
}

// classes returns what the agent can be given.
func (a *agent) classes() (out []class) {
	kind := a.spec.GetKind()
	add := func(name string) { out = append(out, class{kind, name}) }
	for _, name := range a.spec.GetTuners() {
		add(name)
	}
	for _, name := range a.spec.GetToolchains() {
		add(name)
	}
	for _, d := range a.spec.GetDeviceClasses() {
		add(d.GetName())
	}
	return out
}

// keepAlive notes a sign of life.
func (t *Tracker) keepAlive(a *agent) {
	a.seen = t.cfg.Now()
	a.deadline = later(a.deadline, a.seen.Add(t.cfg.LeaseTimeout))
}

// live returns the agent of a session that is not void, and notes the sign of life.
func (t *Tracker) live(session string) (*agent, error) {
	a := t.sessions[session]
	if a == nil {
		return nil, voidSession(session)
	}
	t.keepAlive(a)
	return a, nil
}

// void ends an agent's session; take decides what becomes of each lease it held.
func (c *change) void(a *agent, take func(w work)) {
	delete(c.sessions, a.session)
	a.gone = true
	for w := range a.waiters {
		w.leave()
		w.err = voidSession(a.session)
		close(w.granted)
	}
	for _, l := range a.leases {
		take(l.work)
	}
	c.write.PutAgent(a.proto())
}

// later keeps a deadline from moving back: after a restart the grace outlasts the first heartbeat.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
