package state

import (
	"cmp"
	"slices"
	"strings"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/policy/drift"
	"github.com/tilth-dev/tilth/tracker/policy/quota"
)

// Figures count what is in the machine.
type Figures struct {
	// Leases in force, work that waits to be tried again, requests for work that wait, silent agents of an outage.
	Leases, Retries, Waiters, Silent int
	// Specifications of open jobs, and candidates of batches under way, in bytes.
	SpecBytes, CandidateBytes int64
	// Jobs that have ended and are kept, and what is stored of them.
	Ended      int
	EndedBytes int64
	// What owners of open jobs have, by name.
	Owners map[string]quota.Usage
	// Work that waits for an agent, by what it needs.
	Queues map[Need]int
	Agents map[AgentState]int
	// Open jobs by state, and those that wait by why, all reasons included.
	Jobs    map[tilthv1.JobState]int
	Reasons map[tilthv1.WaitReason]int
	Batches map[storev1.Stage]int
}

// Need is the kind of agent that work needs, and the toolchain, device class or tuner.
type Need struct {
	Kind  tilthv1.AgentKind
	Class string
}

// AgentState is an agent's kind and state.
type AgentState struct {
	Kind  tilthv1.AgentKind
	State tilthv1.AgentState
}

// Figures returns the machine's. What they hold is the caller's.
func (m *Machine) Figures() Figures {
	f := Figures{
		Leases: len(m.leases), Retries: len(m.retries), Silent: int(m.Outage().GetSilent()),
		SpecBytes: m.load.specBytes, CandidateBytes: m.load.candidateBytes,
		Ended: m.archive.Len(), EndedBytes: m.archive.Bytes(), Owners: make(map[string]quota.Usage, len(m.owners)),
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
			continue // nothing waits there
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

// JobFigures are an open job in figures.
type JobFigures struct {
	ID, Name string
	// Trials recorded, and tasks Without a best.
	Trials, Without int
	// BestSeconds is of the tasks that have a best, by their weights.
	BestSeconds float64
}

// OldestJobs are those of the oldest open jobs, so many at most. All who read metrics see them, so private ones are
// none of them.
func (m *Machine) OldestJobs(most int) []JobFigures {
	oldest := make([]*job, 0, len(m.jobs))
	for _, j := range m.jobs {
		if !j.spec.GetPrivate() {
			oldest = append(oldest, j)
		}
	}
	slices.SortFunc(oldest, func(a, b *job) int { return strings.Compare(a.id, b.id) })
	figures := make([]JobFigures, 0, min(most, len(oldest)))
	for _, j := range oldest[:cap(figures)] {
		figures = append(figures, j.figures())
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

// DeviceFigures are a device's last calibration in figures.
type DeviceFigures struct {
	Name         string
	Drift, Noise float64
}

// Devices counts the devices by state, and those warned about, and returns those that drifted furthest, so many at
// most.
func (m *Machine) Devices(most int) (states map[tilthv1.DeviceState]int, warned int, furthest []DeviceFigures) {
	states = map[tilthv1.DeviceState]int{}
	for name, d := range m.devices {
		if m.agents[name] == nil {
			continue // told of, but no runner has joined by that name
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
		furthest = append(furthest, DeviceFigures{name, drift.Drift(last, d.calibration.GetReference()), last.GetNoise()})
	}
	slices.SortFunc(furthest, func(a, b DeviceFigures) int {
		return cmp.Or(cmp.Compare(b.Drift, a.Drift), cmp.Compare(a.Name, b.Name))
	})
	return states, warned, furthest[:min(most, len(furthest))]
}
