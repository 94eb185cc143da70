package state

import (
	"maps"
	"slices"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

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
