package tracker

import (
	"fmt"

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
	for _, stored := range jobs {
		t.recoverJob(stored)
	}
	for _, stored := range batches {
		if err := t.recoverBatch(stored); err != nil {
			return err
		}
	}
	if len(jobs) > 0 {
		t.log.Info("recovered", "jobs", len(jobs), "batches", len(batches), "leases", len(t.leases))
	}
	return nil
}

func (t *Tracker) recoverAgents() error {
	agents, err := t.db.Agents()
	if err != nil {
		return err
	}
	for _, stored := range agents {
		a := &agent{
			spec: stored.GetSpec(), session: stored.GetSession(), joined: stored.GetJoinedAt(),
			seen: stored.GetSeenAt().AsTime(), deadline: t.graceUntil(),
			gone:   stored.GetState() == tilthv1.AgentState_AGENT_STATE_GONE,
			leases: map[string]*lease{}, waiters: map[*waiter]struct{}{},
		}
		t.agents[a.spec.GetName()] = a
		if !a.gone {
			t.sessions[a.session] = a
		}
	}
	return nil
}

func (t *Tracker) recoverJob(stored *records.OpenJob) {
	row := stored.Row
	j := &job{
		id: row.GetJob().GetId(), spec: stored.Spec, meta: row.GetJob(), progress: stored.Progress,
		proposals: row.GetProposals(), lastSequence: stored.LastSequence, batches: map[string]*batch{},
	}
	j.attempt, j.faults = row.GetAttempt(), row.GetFaults()
	t.jobs[j.id] = j
	t.recoverLease(j, row.GetLease())
}

func (t *Tracker) recoverBatch(stored *records.OpenBatch) error {
	row := stored.Row
	j := t.jobs[row.GetJobId()]
	if j == nil || len(row.GetRecorded()) != len(stored.Candidates) || int(row.GetTaskIndex()) >= len(j.spec.GetTasks()) {
		return fmt.Errorf("batch %s: %w: it does not fit its job", stored.ID, records.ErrDamaged)
	}
	b := &batch{
		id: stored.ID, job: j, task: row.GetTaskIndex(), proposal: row.GetProposal(), firstTrial: row.GetFirstTrial(),
		eventSequence: row.GetEventSequence(), mode: row.GetMode(), stage: row.GetStage(), candidates: stored.Candidates,
		recorded: row.GetRecorded(), buildSeconds: row.GetBuildSeconds(), artifacts: row.GetArtifacts(),
		settled: row.GetSettled(),
	}
	b.attempt, b.faults = row.GetAttempt(), row.GetFaults()
	b.open = len(b.pending())
	t.artifacts.Pin(b.artifactDigests()...)
	if row.GetLease() == nil && b.stage == storev1.Stage_STAGE_MEASURE {
		c := &change{Tracker: t}
		if !c.artifactsThere(b) {
			c.toBuild(b)
		}
	}
	j.batches[b.id] = b
	t.batches[b.id] = b
	t.recoverLease(b, row.GetLease())
	return nil
}

// recoverLease puts work back into the hands that held it, or into its queue.
func (t *Tracker) recoverLease(w work, token *tilthv1.LeaseToken) {
	a := t.sessions[token.GetSession()]
	if a == nil {
		t.queue(w.class()).push(w, false)
		return
	}
	l := &lease{token: token, agent: a, work: w, deadline: t.graceUntil(), seen: t.cfg.Now()}
	w.held().lease = l
	t.leases[w.subject()] = l
	a.leases[w.subject()] = l
}
