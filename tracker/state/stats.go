package state

import (
	"cmp"
	"maps"
	"slices"
	"time"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/policy"
)

// Figures are counts of what the machine holds.
type Figures struct {
	// Leases to Silent count leases in force, scheduled retries, requests for work, and silent agents of an outage.
	Leases, Retries, Waiters, Silent int
	// SpecBytes and CandidateBytes are the sizes of open jobs' specifications and of candidates in progress.
	SpecBytes, CandidateBytes int64
	// Ended counts the ended jobs that are retained; EndedBytes is their stored size.
	Ended      int
	EndedBytes int64
	// Owners holds the usage of the owners of open jobs.
	Owners map[string]policy.Usage
	// Queues holds the queue lengths.
	Queues map[Need]int
	Agents map[AgentState]int
	// Jobs counts open jobs by state, Reasons waiting jobs by reason, with an entry for every reason.
	Jobs    map[tilthv1.JobState]int
	Reasons map[tilthv1.WaitReason]int
	Batches map[storev1.Stage]int
}

// Need is the kind of agent that work needs, with the toolchain, device class or tuner.
type Need struct {
	Kind  tilthv1.AgentKind
	Class string
}

// AgentState is an agent's kind and state.
type AgentState struct {
	Kind  tilthv1.AgentKind
	State tilthv1.AgentState
}

// Figures returns the current counts. The caller owns the result.
func (m *Machine) Figures() Figures {
	f := Figures{
		Leases: len(m.leases), Retries: m.retries.Len(), Silent: int(m.Outage().GetSilent()),
		SpecBytes: m.load.specBytes, CandidateBytes: m.load.candidateBytes,
		Ended: m.archive.Len(), EndedBytes: m.archive.Bytes(), Owners: make(map[string]policy.Usage, len(m.owners)),
		Queues: make(map[Need]int, len(m.queues)), Agents: map[AgentState]int{}, Jobs: map[tilthv1.JobState]int{},
		Reasons: m.waitReasons(), Batches: map[storev1.Stage]int{},
	}
	for owner, u := range m.owners {
		f.Owners[owner] = u.Usage
	}
	for _, a := range m.sessions {
		f.Waiters += len(a.waiters)
	}
	for c, q := range m.queues {
		if c == anyBuilder {
			continue // a pseudo class; nothing is queued there
		}
		f.Queues[Need{c.kind, c.name}] += q.work.Len()
	}
	for _, a := range m.agents {
		f.Agents[AgentState{a.spec.GetKind(), a.state()}]++
	}
	for _, j := range m.jobs {
		f.Jobs[j.meta.GetState()]++
	}
	for _, b := range m.batches {
		f.Batches[b.stage]++
	}
	return f
}

// JobFigures summarize an open job.
type JobFigures struct {
	ID, Name string
	// Trials recorded, and tasks Without a best.
	Trials, Without int
	// BestSeconds is the weighted sum of the best latencies found so far.
	BestSeconds float64
}

// OldestJobs returns figures of at most limit open jobs, oldest first. It omits private jobs, since everyone who can
// read the metrics sees the result.
func (m *Machine) OldestJobs(limit int) []JobFigures {
	var figures []JobFigures
	for _, j := range m.jobsByID() {
		if !j.spec.GetPrivate() && len(figures) < limit {
			figures = append(figures, j.figures())
		}
	}
	return figures
}

func (j *job) figures() JobFigures {
	f := JobFigures{ID: j.id, Name: j.spec.GetName()}
	for k, p := range j.progress {
		f.Trials += int(p.GetTrials())
		if p.GetBestSeconds() == 0 {
			f.Without++
		}
		f.BestSeconds += j.spec.GetTasks()[k].GetWeight() * p.GetBestSeconds()
	}
	return f
}

// DeviceFigures summarize a device's last calibration.
type DeviceFigures struct {
	Name         string
	Drift, Noise float64
}

// Devices counts devices by state and devices with warnings. It also returns figures of at most limit devices, largest
// drift first.
func (m *Machine) Devices(limit int) (states map[tilthv1.DeviceState]int, warned int, furthest []DeviceFigures) {
	states = map[tilthv1.DeviceState]int{}
	for name, d := range m.devices {
		if m.agents[name] == nil {
			continue // a stored decision for a runner that has not joined
		}
		states[d.state()]++
		if d.warning != nil {
			warned++
		}
		recent := d.calibration.GetRecent()
		if d.calibration.GetReference() == nil || len(recent) == 0 {
			continue
		}
		last := recent[len(recent)-1]
		furthest = append(furthest, DeviceFigures{name, policy.DriftOf(last, d.calibration.GetReference()), last.GetNoise()})
	}
	slices.SortFunc(furthest, func(a, b DeviceFigures) int {
		return cmp.Or(cmp.Compare(b.Drift, a.Drift), cmp.Compare(a.Name, b.Name))
	})
	return states, warned, furthest[:min(limit, len(furthest))]
}

// AgentNames returns the names of all known agents, in any order.
func (m *Machine) AgentNames() []string { return slices.Collect(maps.Keys(m.agents)) }

// DeviceNames returns the names of all known devices, in any order.
func (m *Machine) DeviceNames() []string { return slices.Collect(maps.Keys(m.devices)) }

// OwnerNames returns the owners of open jobs, in any order.
func (m *Machine) OwnerNames() []string { return slices.Collect(maps.Keys(m.owners)) }

// Agent returns an agent as clients see it.
func (m *Machine) Agent(name string) (*tilthv1.Agent, error) {
	a := m.agents[name]
	if a == nil {
		return nil, refuseUnknown("agent", name)
	}
	return a.view(), nil
}

// Session returns the agent of a valid session and the identity with which it joined.
func (m *Machine) Session(session string) (agent, identity string, ok bool) {
	a := m.sessions[session]
	if a == nil {
		return "", "", false
	}
	return a.name(), a.identity, true
}

// Owner returns the usage and limits of an owner, or nil if it has no open jobs. waiting is the result of Waiting.
func (m *Machine) Owner(name string, waiting map[string]int) *tilthv1.Owner {
	has := m.owners[name]
	if has == nil {
		return nil
	}
	may := m.cfg.Shares.Of(name)
	ended, endedBytes := m.archive.Of(name)
	return &tilthv1.Owner{
		Name: name, Weight: may.Weight,
		Jobs: uint32(has.Jobs), MaxJobs: uint32(may.Jobs),
		Trials: uint64(has.Trials), MaxTrials: uint64(may.Trials),
		ArtifactBytes: uint64(has.ArtifactBytes), MaxArtifactBytes: uint64(may.ArtifactBytes),
		Waiting: uint32(waiting[name]), EndedJobs: uint32(ended), KeepJobs: uint32(max(m.cfg.Keep.Jobs, 0)),
		StoredBytes: uint64(has.StoredBytes + endedBytes), MaxStoredBytes: uint64(may.StoredBytes),
	}
}

// Waiting returns the number of queued items by owner.
func (m *Machine) Waiting() map[string]int {
	n := map[string]int{}
	for _, q := range m.queues {
		q.work.EachWaiting(func(owner string, items int) { n[owner] += items })
	}
	return n
}

// Fact is something that happened and may be counted. The types below are the only ones.
type Fact interface{ isFact() }

type (
	// Granted is a lease granted to an agent, and how long its work had waited.
	Granted struct {
		Kind   tilthv1.AgentKind
		Waited time.Duration
	}
	// Ended is a lease that ended for any reason, and how long it was held.
	Ended struct {
		Kind tilthv1.AgentKind
		Held time.Duration
	}
	// Expired is a lease that expired without a heartbeat.
	Expired struct{ Kind tilthv1.AgentKind }
	// Repeated is a duplicate call that changed nothing.
	Repeated struct{ Call string }
	// Trial is the recorded outcome of a candidate.
	Trial struct{ *tilthv1.Measurement }
	// Built holds the candidates' shares of a build, in seconds.
	Built []float64
	// GaveUp is a batch that became a dead letter.
	GaveUp tilthv1.ErrorClass
	// Dropped is a job that was dropped, with the reason.
	Dropped string
	// Occurrence is an event without data.
	Occurrence int
)

// The occurrences that are counted.
const (
	// CooldownBegan: an agent entered its cooldown.
	CooldownBegan Occurrence = iota
	// OutageBegan: most agents fell silent at once.
	OutageBegan
	// Calibrated: a calibration was accepted.
	Calibrated
	// Quarantined: a device was quarantined, or its quarantine extended.
	Quarantined
	// Warned: a device got a calibration warning.
	Warned
)

func (Granted) isFact()    {}
func (Ended) isFact()      {}
func (Expired) isFact()    {}
func (Repeated) isFact()   {}
func (Trial) isFact()      {}
func (Built) isFact()      {}
func (GaveUp) isFact()     {}
func (Dropped) isFact()    {}
func (Occurrence) isFact() {}
