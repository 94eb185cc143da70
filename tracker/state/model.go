package state

import (
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// readers is the class of tuners that read models. anyBuilder stands for all builders, for jobs that leave the
// toolchain open; nothing is queued for it.
var (
	readers    = class{kind: tilthv1.AgentKind_AGENT_KIND_TUNER, name: wire.ReadsModels, reads: true}
	anyBuilder = class{kind: tilthv1.AgentKind_AGENT_KIND_BUILDER}
)

// reads reports whether the job's model has yet to be read, so that its tasks are unknown.
func (j *job) reads() bool { return j.spec.GetModel() != nil && len(j.spec.GetTasks()) == 0 }

// searches reports whether the job needs a tuner to search.
func (j *job) searches() bool { return !j.runs() && !j.reads() }

// waiting returns the state of the job while no agent holds it.
func (j *job) waiting() tilthv1.JobState {
	if j.reads() {
		return tilthv1.JobState_JOB_STATE_READING
	}
	return tilthv1.JobState_JOB_STATE_QUEUED
}

// readable reports whether a tuner could read the job's model now. That requires a device description and toolchains.
func (m *Machine) readable(w work) bool {
	j, is := w.(*job)
	if !is || !j.reads() {
		return true
	}
	return m.offered(deviceClass(j)) && (j.spec.GetTarget().GetToolchain() != "" || m.offered(anyBuilder))
}

// offered reports whether an agent with a session offers the class.
func (m *Machine) offered(c class) bool {
	q := m.queues[c]
	return q != nil && len(q.offering) > 0
}

func deviceClass(j *job) class {
	return class{kind: tilthv1.AgentKind_AGENT_KIND_RUNNER, name: j.spec.GetTarget().GetDeviceClass()}
}

// described returns the description of the job's device class from the agent first by name, or nil without one.
func (m *Machine) described(j *job) (found *tilthv1.DeviceClass) {
	c, by := deviceClass(j), ""
	if !m.offered(c) {
		return nil
	}
	for a := range m.queues[c].offering {
		for _, d := range a.spec.GetDeviceClasses() {
			if d.GetName() == c.name && (found == nil || a.name() < by) {
				found, by = d, a.name()
			}
		}
	}
	return found
}

// toolchains returns the toolchains that the job may use, sorted.
func (m *Machine) toolchains(j *job) []string {
	if own := j.spec.GetTarget().GetToolchain(); own != "" {
		return []string{own}
	}
	if !m.offered(anyBuilder) {
		return nil
	}
	var all []string
	for a := range m.queues[anyBuilder].offering {
		all = append(all, a.spec.GetToolchains()...)
	}
	slices.SortFunc(all, strings.Compare)
	all = slices.Compact(all)
	return all[:min(len(all), wire.MaxOffers)]
}

func (c *Change) leaseModel(j *job) *tilthv1.LeaseWorkResponse {
	c.setState(j, tilthv1.JobState_JOB_STATE_READING, j.lease.agent.name()+" reads the model")
	return &tilthv1.LeaseWorkResponse{Work: &tilthv1.LeaseWorkResponse_Model{Model: &tilthv1.ModelWork{
		Job: j.whole(), DeviceClass: c.described(j), Toolchains: c.toolchains(j),
	}}}
}
