package tracker

import (
	"cmp"
	"context"
	"slices"

	"github.com/tilth-dev/tilth/access"
	"github.com/tilth-dev/tilth/artifact"
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

func (t *Tracker) openArtifacts() (*artifact.Store, error) {
	options := t.cfg.Artifacts
	options.Dir, options.Logger, options.Now, options.Damaged = t.cfg.ArtifactsDir, t.log, t.cfg.Now, t.damaged
	return artifact.Open(options)
}

// callerName is the identity that a call was made with; empty where nobody is asked.
func callerName(ctx context.Context) string {
	id, _ := access.From(ctx)
	return id.Name
}

// damaged has what needs an artifact that is damaged, and set aside, done again. What an agent holds goes on: it may
// have the artifact, and gives the lease back if it does not.
func (t *Tracker) damaged(digest string) {
	err := t.update(context.Background(), func(c *change) error {
		for _, j := range c.needing(digest) {
			if j.runs() {
				c.endDamaged(j, digest)
			} else {
				c.rebuild(j)
			}
		}
		return nil
	})
	if err != nil {
		t.log.Warn("what needs a damaged artifact is found when an agent asks for it", "artifact", digest, "error", err)
	}
}

// needing are the jobs of which something that waits needs an artifact.
func (t *Tracker) needing(digest string) (jobs []*job) {
	for _, j := range t.jobs {
		waits := j.lease == nil && slices.Contains(runDigests(j.spec.GetRun()), digest)
		for _, b := range j.batches {
			waits = waits || b.lease == nil && slices.Contains(b.artifactDigests(), digest)
		}
		if waits {
			jobs = append(jobs, j)
		}
	}
	slices.SortFunc(jobs, func(a, b *job) int { return cmp.Compare(a.id, b.id) })
	return jobs
}

// rebuild sends batches of a job that wait for a runner, and lack artifacts, back to builders. Their order stays.
func (c *change) rebuild(j *job) {
	runners := class{kind: tilthv1.AgentKind_AGENT_KIND_RUNNER, name: j.spec.GetTarget().GetDeviceClass()}
	if q := c.queues[runners]; q != nil {
		q.work.Remove(j.spec.GetOwner(), j.id)
	}
	for _, b := range j.inOrder() {
		if b.stage != storev1.Stage_STAGE_MEASURE || b.lease != nil {
			continue
		}
		if !c.artifactsThere(b) {
			c.log.Warn("artifacts of a batch are damaged, it is built again", "batch", b.id)
			c.toBuild(b)
			c.move(b)
		}
		if b.retry == nil {
			c.enqueue(b, false)
		}
	}
}

// lackedBy is an artifact that a run needs and that is not there; empty when all are.
func (t *Tracker) lackedBy(run *tilthv1.RunSpec) string {
	for _, digest := range runDigests(run) {
		if complete, _ := t.artifacts.Stat(digest); !complete {
			return digest
		}
	}
	return ""
}

// endDamaged ends a run whose files only its client can send again.
func (c *change) endDamaged(j *job, digest string) {
	c.end(j, tilthv1.JobState_JOB_STATE_FAILED, "the tracker's copy of artifact "+digest+" was damaged: run it again")
}
