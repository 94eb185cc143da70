package state

import (
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// readers are tuners that read models, and anyBuilder the builders of a job that leaves the toolchain open. No work
// waits for the latter.
var (
	readers    = class{kind: tilthv1.AgentKind_AGENT_KIND_TUNER, name: wire.ReadsModels, reads: true}
	anyBuilder = class{kind: tilthv1.AgentKind_AGENT_KIND_BUILDER}
)

// reads says whether the job's model is to be read, and its tasks are not known.
func (j *job) reads() bool { return j.spec.GetModel() != nil && len(j.spec.GetTasks()) == 0 }

// searches says whether the job is for a tuner to search.
func (j *job) searches() bool { return !j.runs() && !j.reads() }

// waiting is the state of a job that is in nobody's hands.
func (j *job) waiting() tilthv1.JobState {
	if j.reads() {
		return tilthv1.JobState_JOB_STATE_READING
	}
	return tilthv1.JobState_JOB_STATE_QUEUED
}

// readable says whether a tuner can read a job's model now: that takes the description of a device, and toolchains.
func (m *Machine) readable(w work) bool {
	j, is := w.(*job)
	if !is || !j.reads() {
		return true
	}
	return m.offered(deviceClass(j)) && (j.spec.GetTarget().GetToolchain() != "" || m.offered(anyBuilder))
}

// offered says whether an agent is joined that can be given work of a class.
func (m *Machine) offered(c class) bool {
	q := m.queues[c]
	return q != nil && len(q.offering) > 0
}

func deviceClass(j *job) class {
	return class{kind: tilthv1.AgentKind_AGENT_KIND_RUNNER, name: j.spec.GetTarget().GetDeviceClass()}
}

// described is what the device that comes first by name says of a job's device class; nil when none is joined.
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

// toolchains are those of which a job has one, in order.
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
	return all[:min(len(all), wire.MostOffers)]
}

func (c *Change) leaseModel(j *job) *tilthv1.LeaseWorkResponse {
	c.setState(j, tilthv1.JobState_JOB_STATE_READING, j.lease.agent.name()+" reads the model")
	return &tilthv1.LeaseWorkResponse{Work: &tilthv1.LeaseWorkResponse_Model{Model: &tilthv1.ModelWork{
		Job: j.whole(), DeviceClass: c.described(j), Toolchains: c.toolchains(j),
	}}}
}
