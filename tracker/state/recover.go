package state

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/internal/wire"
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/policy"
)

// Rows is what a machine reads from a store to resume where its predecessor stopped.
type Rows interface {
	// LastJobID returns the id of the newest job ever created, or "".
	LastJobID() (string, error)
	// OpenJobs and OpenBatches return what was in progress. Damaged rows have Damage set.
	OpenJobs() ([]*records.OpenJob, error)
	OpenBatches() ([]*records.OpenBatch, error)
	// EndedJobs iterates over the retained ended jobs, in any order.
	EndedJobs(take func(id string, row *storev1.EndedRow)) error
	// ClosedJobs returns the jobs that have closed batches, with their numbers of proposals.
	ClosedJobs() (ids []string, proposals []uint64, err error)
	// Agents and Devices iterate over all known agents and devices.
	Agents(take func(*tilthv1.Agent)) error
	Devices(take func(name string, row *storev1.DeviceRow)) error
	// Events returns at most limit events of a job, from a sequence number on.
	Events(jobID string, from uint64, limit int) ([]*tilthv1.JobEvent, error)
}

// Recover loads agents, open jobs and open batches. Existing sessions and leases stay valid for the grace period, so
// agents that outlived the tracker continue their work. The caller must apply mend as the next change: it repairs rows
// that cannot stay as they are.
func (m *Machine) Recover(rows Rows) (mend func(c *Change) error, err error) {
	last, err := rows.LastJobID()
	if err != nil {
		return nil, err
	}
	if last != "" {
		if _, err := fmt.Sscanf(last, "job-%d", &m.nextJob); err != nil {
			return nil, fmt.Errorf("job id %q: %w", last, err)
		}
	}
	shortened, err := m.recoverAgents(rows)
	if err != nil {
		return nil, err
	}
	jobs, damaged, err := m.recoverJobs(rows)
	if err != nil {
		return nil, err
	}
	batches, err := rows.OpenBatches()
	if err != nil {
		return nil, err
	}
	lost, err := m.recoverBatches(batches)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(m.recoverArchive(rows), m.recoverClosed(rows)); err != nil {
		return nil, err
	}
	if jobs > 0 {
		m.log.Info("recovered", "jobs", jobs, "batches", len(batches), "leases", len(m.leases))
	}
	return func(c *Change) error {
		for _, a := range shortened {
			c.write.PutAgent(a.proto())
		}
		c.endLost(damaged, lost)
		return nil
	}, nil
}

// recoverAgents loads the agents and returns those whose specs had to be shortened.
func (m *Machine) recoverAgents(rows Rows) (shortened []*agent, err error) {
	if err := m.recoverDevices(rows); err != nil {
		return nil, err
	}
	err = rows.Agents(func(stored *tilthv1.Agent) {
		cut := shorten(stored.GetSpec())
		a := newAgent(stored.GetSpec(), stored.GetSession())
		a.identity, a.truncated = stored.GetIdentity(), cut || stored.GetTruncated()
		a.joined, a.gone = stored.GetJoinedAt(), stored.GetState() == tilthv1.AgentState_AGENT_STATE_GONE
		a.seen, a.heard, a.deadline = stored.GetSeenAt().AsTime(), m.cfg.Clock(), m.graceUntil()
		a.unheard = !a.gone
		if a.gone {
			a.deadline = m.keptUntil(a)
		}
		m.admit(a)
		if cut {
			m.log.Warn("description of an agent from an older version is shortened", "agent", a.name())
			shortened = append(shortened, a)
		}
	})
	return shortened, err
}

// recoverJobs loads the open jobs and returns those that are damaged.
func (m *Machine) recoverJobs(rows Rows) (all int, damaged []*records.OpenJob, err error) {
	jobs, err := rows.OpenJobs()
	if err != nil {
		return 0, nil, err
	}
	for _, stored := range jobs {
		if stored.Damage == nil {
			stored.Damage = m.recoverJob(rows, stored)
		}
		switch {
		case errors.Is(stored.Damage, records.ErrDamaged), errors.Is(stored.Damage, records.ErrNotFound):
			damaged = append(damaged, stored)
		case stored.Damage != nil:
			return 0, nil, stored.Damage
		}
	}
	return len(jobs), damaged, nil
}

func (m *Machine) recoverJob(rows Rows, stored *records.OpenJob) error {
	row := stored.Row
	j := &job{
		id: row.GetJob().GetId(), requestKey: row.GetRequestKey(), spec: stored.Spec, specBytes: int64(proto.Size(stored.Spec)), meta: row.GetJob(), progress: stored.Progress,
		proposals: row.GetProposals(), lastSequence: stored.LastSequence, finishedBy: row.GetFinishedBy(), batches: map[string]*batch{},
	}
	j.storedBytes = int64(row.GetStoredBytes())
	for _, p := range j.progress {
		j.proposed += int(p.GetProposed())
	}
	j.attempt, j.faults, j.failures, j.failedBy = row.GetAttempt(), row.GetFaults(), row.GetFaults(), row.GetFailedBy()
	if err := m.recoverTime(rows, j); err != nil {
		return err
	}
	m.addJob(j)
	j.aloneUntil = m.graceUntil()
	m.artifacts.Pin(j.needs()...)
	m.recoverLease(j, row.GetLease())
	return nil
}

func (m *Machine) recoverBatch(stored *records.OpenBatch) error {
	b, err := m.restore(m.jobs[stored.Row.GetJobId()], stored)
	if err != nil {
		return err
	}
	m.addBatch(b)
	if stored.Row.GetLease() == nil && b.stage == storev1.Stage_STAGE_MEASURE && !m.artifactsThere(b) {
		m.toBuild(b)
	}
	m.recoverLease(b, stored.Row.GetLease())
	return nil
}

// restore builds a batch from its stored row.
func (*Machine) restore(j *job, stored *records.OpenBatch) (*batch, error) {
	row := stored.Row
	if j == nil || len(row.GetRecorded()) != len(stored.Candidates) || int(row.GetTaskIndex()) >= len(j.spec.GetTasks()) {
		return nil, fmt.Errorf("batch %s: %w: it does not fit its job", stored.ID, records.ErrDamaged)
	}
	b := &batch{
		id: stored.ID, job: j, task: row.GetTaskIndex(), proposal: row.GetProposal(), firstTrial: row.GetFirstTrial(),
		eventSequence: row.GetEventSequence(), mode: row.GetMode(), remeasured: row.GetRemeasured(), stage: row.GetStage(), candidates: stored.Candidates, sizeBytes: candidateBytes(stored.Candidates),
		predicted: stored.PredictedSeconds, recorded: row.GetRecorded(), buildSeconds: row.GetBuildSeconds(), artifacts: row.GetArtifacts(), builtBy: row.GetBuiltBy(),
		settled: row.GetSettled(),
	}
	b.attempt, b.faults, b.failures, b.failedBy = row.GetAttempt(), row.GetFaults(), row.GetFailures(), row.GetFailedBy()
	b.open = len(b.pending())
	return b, nil
}

// recoverLease restores the lease of recovered work, or queues the work.
func (m *Machine) recoverLease(w work, token *tilthv1.LeaseToken) {
	a := m.sessions[token.GetSession()]
	if a == nil {
		w.held().elsewhere = m.cfg.Clock().Add(m.cfg.LeaseTimeout)
		m.push(w, false)
		return
	}
	now, q := m.cfg.Clock(), m.queue(w.class())
	l := &lease{token: token, agent: a, work: w, deadline: m.graceUntil(), seen: now, cost: q.begin(now, q.work.Begin(m.flow(w)), w.size())}
	w.held().lease = l
	m.leases[w.subject()] = l
	a.leases[w.subject()] = l
	m.deadlines.lease(l)
}

// whyDamaged is the failure reason of jobs with damaged rows.
const whyDamaged = "rows of it in the records file are damaged: submit it again; measurements are kept"

// endLost ends the jobs whose rows, or whose batches' rows, are damaged. Other jobs continue.
func (c *Change) endLost(jobs []*records.OpenJob, batches []*records.OpenBatch) {
	lost := map[string]*job{}
	for _, b := range batches {
		c.log.Error("batch is damaged and dropped", "batch", b.ID, "error", b.Damage)
		c.write.DropBatch(b.ID)
		id, _, _ := strings.Cut(b.ID, ".")
		if j := c.jobs[id]; j != nil {
			lost[id] = j
		}
	}
	for _, id := range slices.Sorted(maps.Keys(lost)) {
		c.end(lost[id], tilthv1.JobState_JOB_STATE_FAILED, whyDamaged)
	}
	for _, j := range jobs {
		c.log.Error("job cannot go on", "job", j.ID, "error", j.Damage)
		row := c.endedRow(j)
		c.write.PutJob(row)
		c.keepEnded(&policy.RetainedJob{ID: j.ID, Owner: j.Spec.GetOwner(), Ended: row.GetJob().GetEndedAt().AsTime(), Bytes: int64(row.GetStoredBytes())})
	}
}

// endedRow returns the final row of a damaged job. It keeps whatever was readable.
func (c *Change) endedRow(stored *records.OpenJob) *storev1.JobRow {
	row := stored.Row
	if row.GetJob() == nil || row.GetJob().GetId() != stored.ID {
		row = &storev1.JobRow{Job: &tilthv1.Job{Id: stored.ID, CreatedAt: c.now()}}
	}
	row.Lease = nil
	row.Job.State, row.Job.Reason, row.Job.EndedAt = tilthv1.JobState_JOB_STATE_FAILED, whyDamaged, c.now()
	return row
}

// recoverBatches loads the open batches and returns those that are damaged.
func (m *Machine) recoverBatches(stored []*records.OpenBatch) (damaged []*records.OpenBatch, err error) {
	for _, b := range stored {
		if b.Damage == nil {
			b.Damage = m.recoverBatch(b)
		}
		switch {
		case errors.Is(b.Damage, records.ErrDamaged):
			damaged = append(damaged, b)
		case b.Damage != nil:
			return nil, b.Damage
		}
	}
	return damaged, nil
}

const (
	// MaxAgentBytes bounds the stored spec of an agent, so that several fit one message.
	MaxAgentBytes = 1 << 20
	// maxHostBytes bounds the host and version strings of a shortened spec.
	maxHostBytes = 256
)

// shorten cuts the spec of an agent that joined before bounds existed, and reports whether it was too large. It keeps
// the first items that fit, and drops labels, which only inform people.
func shorten(spec *tilthv1.AgentSpec) bool {
	offers := max(len(spec.GetTuners()), len(spec.GetToolchains()), len(spec.GetDeviceClasses()))
	if proto.Size(spec) <= MaxAgentBytes && offers <= wire.MaxOffers {
		return false
	}
	left := MaxAgentBytes / 2
	fits := func(size int) bool {
		if size > left {
			return false
		}
		left -= size
		return true
	}
	short := func(name string) bool { return len(name) <= records.MaxNameBytes && fits(len(name)) }
	spec.Host, spec.Version = clip(spec.GetHost(), maxHostBytes), clip(spec.GetVersion(), maxHostBytes)
	spec.Labels, spec.Sandbox = nil, nil
	spec.Tuners = few(spec.GetTuners(), short)
	spec.Toolchains = few(spec.GetToolchains(), short)
	spec.Capabilities = few(spec.GetCapabilities(), short)
	spec.DeviceClasses = few(spec.GetDeviceClasses(), func(d *tilthv1.DeviceClass) bool {
		return len(d.GetName()) <= records.MaxNameBytes && fits(proto.Size(d))
	})
	return true
}

// few returns the first items that fit.
func few[T any](items []T, fits func(T) bool) (out []T) {
	for _, item := range items {
		if len(out) == wire.MaxOffers {
			break
		}
		if fits(item) {
			out = append(out, item)
		}
	}
	return out
}
