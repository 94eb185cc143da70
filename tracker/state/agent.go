package state

import (
	"container/list"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/policy/rest"
	"github.com/tilth-dev/tilth/tracker/refusal"
)

// agent is an agent that joined at some time.
type agent struct {
	spec     *tilthv1.AgentSpec
	session  string
	identity string // the authenticated name of who joined
	// The spec as it is kept: its size, and whether something was left out of it.
	specBytes int64
	truncated bool
	joined    *timestamppb.Timestamp
	// When it was last heard of, on the wall's clock for show and on the tracker's for judgement, and until when it
	// may be silent.
	seen  time.Time
	heard time.Time
	// It was joined when the tracker was started, and nothing was heard of it since.
	unheard bool
	// When the session is void without a sign of life; of one that is gone, when it is forgotten.
	deadline time.Time
	// What it can be given, and which of that has its turn.
	offers []class
	turn   int
	rest   rest.Record
	// Work for it waits in another shard, as it said last.
	wanted bool
	// The session is void: the agent left, or was not heard of until its deadline.
	gone bool
	// Its place among those that are gone.
	goneAt *list.Element
	// That was noted among the leases that failed.
	struckOut bool
	leases    map[string]*lease // by subject
	waiters   map[*Waiter]struct{}
	// Of a runner; nil of others.
	device    *device
	completed uint64
	failed    uint64
}

// newAgent is an agent of a session that begins.
func newAgent(spec *tilthv1.AgentSpec, session string) *agent {
	return &agent{
		spec: spec, specBytes: int64(proto.Size(spec)), session: session, offers: offersOf(spec),
		leases: map[string]*lease{}, waiters: map[*Waiter]struct{}{},
	}
}

func (a *agent) name() string { return a.spec.GetName() }

// takesWork says whether the agent is to be given anything now.
func (a *agent) takesWork(now time.Time) bool { return a.device.ready() && !a.rest.Rests(now) }

// admit makes an agent known, and its session unless it is gone.
func (m *Machine) admit(a *agent) {
	m.forgetName(a.name())
	m.agents[a.name()] = a
	m.load.agentBytes += a.specBytes
	if a.spec.GetKind() == tilthv1.AgentKind_AGENT_KIND_RUNNER {
		a.device = m.device(a.name())
	}
	m.deadlines.agent(a)
	if a.gone {
		a.goneAt = m.gone.PushBack(a)
		return
	}
	m.sessions[a.session] = a
	m.members.add(a.identity, 1)
	for _, class := range a.offers {
		m.queue(class).offering[a] = struct{}{}
	}
}

// owner is whose an agent is: the identity that proved itself, or, where nobody is asked, the agent.
func (a *agent) owner() string {
	if a.identity != "" {
		return "identity " + a.identity
	}
	return "agent " + a.name()
}

func (a *agent) state() tilthv1.AgentState {
	switch {
	case a.gone:
		return tilthv1.AgentState_AGENT_STATE_GONE
	case len(a.leases) > 0:
		return tilthv1.AgentState_AGENT_STATE_BUSY
	}
	return tilthv1.AgentState_AGENT_STATE_IDLE
}

// proto is the agent as it is stored.
func (a *agent) proto() *tilthv1.Agent {
	out := &tilthv1.Agent{
		Spec: a.spec, Session: a.session, State: a.state(), JoinedAt: a.joined, SeenAt: timestamppb.New(a.seen),
		Completed: a.completed, Failed: a.failed, Identity: a.identity, Truncated: a.truncated,
	}
	if until, reason, ok := a.rest.Last(); ok {
		out.RestingUntil, out.RestReason = timestamppb.New(until), reason
	}
	return out
}

// shown is the agent as others see it: its session, which is all that it proves itself by where nobody is asked who
// they are, stays a secret.
func (a *agent) shown() *tilthv1.Agent {
	out := a.proto()
	out.Session = ""
	return out
}

// keepAlive notes a sign of life.
func (m *Machine) keepAlive(a *agent) {
	a.seen, a.heard, a.unheard = m.cfg.Now(), m.cfg.Clock(), false
	a.deadline = later(a.deadline, a.heard.Add(m.cfg.LeaseTimeout))
}

// live returns the agent of a session that is not void, and notes the sign of life.
func (m *Machine) live(session string) (*agent, error) {
	a := m.sessions[session]
	if a == nil {
		return nil, refusal.Session(session)
	}
	m.keepAlive(a)
	return a, nil
}

// void ends an agent's session; take decides what becomes of each lease it held.
func (c *Change) void(a *agent, take func(w work)) {
	delete(c.sessions, a.session)
	c.members.add(a.identity, -1)
	a.gone, a.goneAt = true, c.gone.PushBack(a)
	for _, class := range a.offers {
		delete(c.queue(class).offering, a)
	}
	a.deadline = c.keptUntil(a)
	c.deadlines.agent(a)
	for w := range a.waiters {
		w.leave()
		c.effects.Void = append(c.effects.Void, w)
	}
	for _, l := range a.inOrder() {
		if a.leases[l.work.subject()] == l { // its job may have ended with the one before
			take(l.work)
		}
	}
	for _, class := range a.offers {
		c.forgetQueue(class)
	}
	c.write.PutAgent(a.proto())
}

// inOrder returns the agent's leases by subject.
func (a *agent) inOrder() []*lease {
	return slices.SortedFunc(maps.Values(a.leases), func(x, y *lease) int { return strings.Compare(x.work.subject(), y.work.subject()) })
}

// later keeps a deadline from moving back: after a restart the grace outlasts the first heartbeat.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
