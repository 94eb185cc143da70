package tracker

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// recover loads what is under way: agents, open jobs and their batches. Sessions and leases from before stay valid for
// the grace, so agents that outlived the tracker go on with what they hold.
func (t *Tracker) recover() error {
	last, err := t.db.LastJobID()
	if err != nil {
		return err
	}
	if last != "" {
		if _, err := fmt.Sscanf(last, "job-%d", &t.nextJob); err != nil {
			return fmt.Errorf("job id %q: %w", last, err)
		}
	}
	if err := t.recoverAgents(); err != nil {
		return err
	}
	jobs, err := t.db.OpenJobs()
	if err != nil {
		return err
	}
	batches, err := t.db.OpenBatches()
	if err != nil {
		return err
	}
	var damaged []*records.OpenJob
	for _, stored := range jobs {
		if stored.Damage == nil {
			stored.Damage = t.recoverJob(stored)
		}
		switch {
		case errors.Is(stored.Damage, records.ErrDamaged), errors.Is(stored.Damage, records.ErrNotFound):
			damaged = append(damaged, stored)
		case stored.Damage != nil:
			return stored.Damage
		}
	}
	lost, err := t.recoverBatches(batches)
	if err != nil {
		return err
	}
	if err := errors.Join(t.recoverArchive(), t.recoverDamaged(damaged, lost), t.recoverClosed()); err != nil {
		return err
	}
	if err := t.retainAll(); err != nil {
		return err
	}
	if at := t.db.Restored(); !at.IsZero() {
		t.log.Warn("the records file is a restored backup: what came after it is lost, all agents join anew", "of", at.UTC())
	}
	if len(jobs) > 0 {
		t.log.Info("recovered", "jobs", len(jobs), "batches", len(batches), "leases", len(t.leases))
	}
	return nil
}

func (t *Tracker) recoverAgents() error {
	if err := t.recoverDevices(); err != nil {
		return err
	}
	shortened := &records.Write{}
	err := t.db.Agents(func(stored *tilthv1.Agent) {
		cut := shorten(stored.GetSpec())
		a := newAgent(stored.GetSpec(), stored.GetSession())
		a.identity, a.truncated = stored.GetIdentity(), cut || stored.GetTruncated()
		a.joined, a.gone = stored.GetJoinedAt(), stored.GetState() == tilthv1.AgentState_AGENT_STATE_GONE
		a.seen, a.heard, a.deadline = stored.GetSeenAt().AsTime(), t.cfg.Clock(), t.graceUntil()
		a.unheard = !a.gone
		if a.gone {
			a.deadline = t.keptUntil(a)
		}
		t.admit(a)
		if cut {
			t.log.Warn("agent joined before there were bounds: what it says of itself is shortened", "agent", a.name())
			shortened.PutAgent(a.proto())
		}
	})
	if err != nil {
		return err
	}
	return t.db.Commit(shortened).Wait(context.Background())
}

func (t *Tracker) recoverJob(stored *records.OpenJob) error {
	row := stored.Row
	j := &job{
		id: row.GetJob().GetId(), requestKey: row.GetRequestKey(), spec: stored.Spec, specBytes: int64(proto.Size(stored.Spec)), meta: row.GetJob(), progress: stored.Progress,
		proposals: row.GetProposals(), lastSequence: stored.LastSequence, finishedBy: row.GetFinishedBy(), batches: map[string]*batch{},
	}
	j.storedBytes = max(int64(row.GetStoredBytes()), j.specBytes) // rows from before it was counted have none
	for _, p := range j.progress {
		j.proposed += int(p.GetProposed())
	}
	j.attempt, j.faults, j.failures, j.failedBy = row.GetAttempt(), row.GetFaults(), row.GetFaults(), row.GetFailedBy()
	if err := t.recoverTime(j); err != nil {
		return err
	}
	t.addJob(j)
	t.artifacts.Pin(runDigests(j.spec.GetRun())...)
	t.recoverLease(j, row.GetLease())
	return nil
}

func (t *Tracker) recoverBatch(stored *records.OpenBatch) error {
	b, err := t.restore(t.jobs[stored.Row.GetJobId()], stored)
	if err != nil {
		return err
	}
	t.addBatch(b)
	if stored.Row.GetLease() == nil && b.stage == storev1.Stage_STAGE_MEASURE {
		c := &change{Tracker: t}
		if !c.artifactsThere(b) {
			c.toBuild(b)
		}
	}
	t.recoverLease(b, stored.Row.GetLease())
	return nil
}

// restore makes a job's batch of what is stored of it.
func (*Tracker) restore(j *job, stored *records.OpenBatch) (*batch, error) {
	row := stored.Row
	if j == nil || len(row.GetRecorded()) != len(stored.Candidates) || int(row.GetTaskIndex()) >= len(j.spec.GetTasks()) {
		return nil, fmt.Errorf("batch %s: %w: it does not fit its job", stored.ID, records.ErrDamaged)
	}
	b := &batch{
		id: stored.ID, job: j, task: row.GetTaskIndex(), proposal: row.GetProposal(), firstTrial: row.GetFirstTrial(),
		eventSequence: row.GetEventSequence(), mode: row.GetMode(), remeasured: row.GetRemeasured(), stage: row.GetStage(), candidates: stored.Candidates, sizeBytes: candidateBytes(stored.Candidates),
		recorded: row.GetRecorded(), buildSeconds: row.GetBuildSeconds(), artifacts: row.GetArtifacts(), builtBy: row.GetBuiltBy(),
		settled: row.GetSettled(),
	}
	b.attempt, b.faults, b.failedBy = row.GetAttempt(), row.GetFaults(), row.GetFailedBy()
	b.failures = max(row.GetFailures(), row.GetFaults()) // rows from before they were told apart have faults only
	b.open = len(b.pending())
	return b, nil
}

// recoverLease puts work back into the hands that held it, or into its queue.
func (t *Tracker) recoverLease(w work, token *tilthv1.LeaseToken) {
	a := t.sessions[token.GetSession()]
	if a == nil {
		w.held().elsewhere = t.cfg.Clock().Add(t.cfg.LeaseTimeout)
		t.push(w, false)
		return
	}
	now, q := t.cfg.Clock(), t.queue(w.class())
	l := &lease{
		token: token, agent: a, work: w, deadline: t.graceUntil(), seen: now,
		cost: q.begin(now, q.work.Begin(t.flow(w)), w.size()),
	}
	w.held().lease = l
	t.leases[w.subject()] = l
	a.leases[w.subject()] = l
	t.deadlines.lease(l)
}
