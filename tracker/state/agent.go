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
	"github.com/tilth-dev/tilth/tracker/policy"
)

// agent is an agent that has joined at least once, including one whose session has ended.
type agent struct {
	spec     *tilthv1.AgentSpec
	session  string
	identity string // authenticated name of the caller that joined
	// specBytes is the size of the stored spec; truncated is set if it was shortened to fit the bounds.
	specBytes int64
	truncated bool
	joined    *timestamppb.Timestamp
	// seen and heard are the time of the last call. seen is wall-clock time, for display; heard is read from Clock and
	// used for deadlines.
	seen  time.Time
	heard time.Time
	// unheard is set for agents recovered at start-up until their first heartbeat.
	unheard bool
	// deadline is when the session expires unless renewed, or when an agent that is gone is forgotten.
	deadline time.Time
	// offers lists the classes of work it accepts; turn is the index of the class to serve next.
	offers   []class
	turn     int
	failures policy.FailureRecord
	// wanted is set while its last heartbeat reported work waiting for it in another shard.
	wanted bool
	// machineHeldBy names the processes for which it waits to use its machine; empty if it does not wait.
	machineHeldBy string
	// gone is set once the session is void: the agent left or missed its deadline.
	gone bool
	// goneAt is its element in Machine.gone.
	goneAt *list.Element
	// struckOut is set once the end of its session was counted as a failed lease.
	struckOut bool
	leases    map[string]*lease // by subject
	waiters   map[*Waiter]struct{}
	// device is the device of a runner; nil for other kinds.
	device    *device
	completed uint64
	failed    uint64
}

// newAgent returns an agent with a new session.
func newAgent(spec *tilthv1.AgentSpec, session string) *agent {
	return &agent{
		spec: spec, specBytes: int64(proto.Size(spec)), session: session, offers: offersOf(spec),
		leases: map[string]*lease{}, waiters: map[*Waiter]struct{}{},
	}
}

func (a *agent) name() string { return a.spec.GetName() }

// takesWork reports whether the agent may be given work now.
func (a *agent) takesWork(now time.Time) bool { return a.device.ready() && !a.failures.InCooldown(now) }

// admit registers an agent and, unless it is gone, its session.
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

// owner returns the identity that authenticated the agent or, without authentication, the agent's name.
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

// proto returns the agent as it is stored.
func (a *agent) proto() *tilthv1.Agent {
	out := &tilthv1.Agent{
		Spec: a.spec, Session: a.session, State: a.state(), JoinedAt: a.joined, SeenAt: timestamppb.New(a.seen),
		Completed: a.completed, Failed: a.failed, Identity: a.identity, Truncated: a.truncated,
	}
	if until, reason, ok := a.failures.Last(); ok {
		out.RestingUntil, out.RestReason = timestamppb.New(until), reason
	}
	return out
}

// view returns the agent as clients see it. It omits the session, which is the agent's only credential when
// authentication is off.
func (a *agent) view() *tilthv1.Agent {
	out := a.proto()
	out.Session = ""
	return out
}

// keepAlive renews the session's deadline.
func (m *Machine) keepAlive(a *agent) {
	a.seen, a.heard, a.unheard = m.cfg.Now(), m.cfg.Clock(), false
	a.deadline = later(a.deadline, a.heard.Add(m.cfg.LeaseTimeout))
}

// live returns the agent of a valid session and renews its deadline.
func (m *Machine) live(session string) (*agent, error) {
	a := m.sessions[session]
	if a == nil {
		return nil, RefuseSession(session)
	}
	m.keepAlive(a)
	return a, nil
}

// void ends an agent's session. It calls take for each lease that the agent held.
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
		if a.leases[l.work.subject()] == l { // an earlier lease may have ended its job
			take(l.work)
		}
	}
	for _, class := range a.offers {
		c.forgetQueue(class)
	}
	c.write.PutAgent(a.proto())
}

// inOrder returns the agent's leases sorted by subject.
func (a *agent) inOrder() []*lease {
	return slices.SortedFunc(maps.Values(a.leases), func(x, y *lease) int { return strings.Compare(x.work.subject(), y.work.subject()) })
}

// later returns the later of two deadlines, so that none moves back: after a restart the grace period outlasts the
// first heartbeat.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
