package state

import (
	"cmp"
	"container/list"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tilth-dev/tilth/internal/wire"
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

// Joined is the response to an agent that joined.
type Joined struct {
	// HeartbeatInterval is how often the agent must report. Calibrate asks it to calibrate its device first.
	HeartbeatInterval time.Duration
	Calibrate         bool
}

// Join registers an agent with a new session. It voids an older session of the same name.
func (c *Change) Join(spec *tilthv1.AgentSpec, session, identity string) (Joined, error) {
	a := newAgent(spec, session)
	if err := cmp.Or(c.checkTakeover(spec.GetName(), identity), c.roomForAgent(a)); err != nil {
		return Joined{}, err
	}
	a.joined, a.identity = c.now(), identity
	c.keepAlive(a)
	if old := c.agents[spec.GetName()]; old != nil {
		if !old.gone {
			c.void(old, func(w work) {
				c.failAttempt(w, tilthv1.ErrorClass_ERROR_CLASS_FARM_INFRA, fmt.Sprintf("%s joined again", spec.GetName()))
			})
		}
		a.failures = old.failures
	}
	c.admit(a)
	for c.gone.Len() > c.cfg.Limits.Gone { // agents choose their names freely, so their number must be bounded
		c.forget(c.gone.Front().Value.(*agent))
	}
	told := Joined{HeartbeatInterval: c.heartbeatInterval(), Calibrate: c.rejoined(a)}
	c.write.PutAgent(a.proto())
	c.log.Info("agent joined", "agent", spec.GetName(), "kind", wire.AgentKind(spec.GetKind()), "version", spec.GetVersion())
	return told, nil
}

// Leave ends a session at its agent's request. Repeating the call changes nothing.
func (c *Change) Leave(session string) {
	if a := c.sessions[session]; a != nil {
		c.log.Info("agent left", "agent", a.spec.GetName())
		c.void(a, func(w work) { c.giveBack(w, "left") })
	}
}

// checkTakeover refuses a name whose live session belongs to another identity, whose leases would be lost. After a
// board is reinstalled under a new identity, its name is free once the old session is gone.
func (c *Change) checkTakeover(name, identity string) error {
	old := c.agents[name]
	if old == nil || old.gone || old.identity == identity {
		return nil
	}
	return Refuse(Denied, "agent %q is joined by another identity: choose another --name, or stop the other", name)
}

// Members counts sessions by identity. Its methods are safe for concurrent use, so callers need not lock the machine.
type Members struct {
	mu     sync.Mutex
	counts map[string]int
}

// Members returns the machine's counts.
func (m *Machine) Members() *Members { return &m.members }

// Of returns the number of sessions of an identity.
func (m *Members) Of(identity string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts[identity]
}

func (m *Members) add(identity string, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counts == nil {
		m.counts = map[string]int{}
	}
	if m.counts[identity] += n; m.counts[identity] == 0 {
		delete(m.counts, identity)
	}
}

// offersOf returns the classes of work that an agent accepts, without duplicates.
func offersOf(spec *tilthv1.AgentSpec) (out []class) {
	known := map[class]bool{}
	add := func(c class) {
		if !known[c] {
			known[c] = true
			out = append(out, c)
		}
	}
	runs := slices.Contains(spec.GetCapabilities(), wire.RunsPackages)
	for _, name := range slices.Concat(spec.GetTuners(), spec.GetToolchains()) {
		add(class{kind: spec.GetKind(), name: name})
		if runs && spec.GetKind() == tilthv1.AgentKind_AGENT_KIND_BUILDER {
			add(class{kind: spec.GetKind(), name: name, runs: true})
		}
	}
	switch {
	case spec.GetKind() == tilthv1.AgentKind_AGENT_KIND_TUNER && slices.Contains(spec.GetCapabilities(), wire.ReadsModels):
		add(readers)
	case spec.GetKind() == tilthv1.AgentKind_AGENT_KIND_BUILDER && len(spec.GetToolchains()) > 0:
		add(anyBuilder)
	}
	for _, d := range spec.GetDeviceClasses() {
		add(class{kind: spec.GetKind(), name: d.GetName()})
		if runs {
			add(class{kind: spec.GetKind(), name: d.GetName(), runs: true})
			add(class{kind: spec.GetKind(), name: d.GetName(), runs: true, device: spec.GetName()})
		}
	}
	return out
}

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
