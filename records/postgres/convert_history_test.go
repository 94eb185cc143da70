package postgres_test

import (
	"context"
	"fmt"
	"io"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// step changes a store as a tracker would. Applied to several stores, it has the same effect on each.
type step func(ctx context.Context, s records.Store) error

// history draws consistent sequences of steps.
type history struct {
	jobs   int
	open   map[string]uint64 // job -> sequence of its last event
	ended  map[string]bool
	second int64
	trial  uint32
}

// levels lists the levels of numerics.
var levels = []string{"strict", "default", "fast"}

// Few names, so that steps often meet the same object.
const maxAgents, maxBatches = 3, 4

// Draw draws up to most steps.
func (h *history) Draw(t *rapid.T, most int) (steps []step) {
	kinds := []func(*rapid.T) step{
		h.begin, h.begin, h.trials, h.trials, h.trials, h.batch, h.batch, h.end, h.drop, h.agent, h.add, h.add, h.suspect, h.load, h.prune,
	}
	for range rapid.IntRange(0, most).Draw(t, "steps") {
		if step := rapid.SampledFrom(kinds).Draw(t, "kind")(t); step != nil {
			steps = append(steps, step)
		}
	}
	return steps
}

// writes returns a step that commits one write.
func writes(fill func(w *records.Write)) step {
	return func(ctx context.Context, s records.Store) error {
		w := &records.Write{}
		fill(w)
		return s.Commit(w).Wait(ctx)
	}
}

// some draws a job from a set; "" if it is empty.
func some[V any](t *rapid.T, of map[string]V, jobs int) string {
	var names []string
	for n := range jobs {
		if _, there := of[jobName(n)]; there {
			names = append(names, jobName(n))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return rapid.SampledFrom(names).Draw(t, "job")
}

func jobName(n int) string { return fmt.Sprintf("job-%d", n) }

func ownerOf(n int) string { return []string{"ana", "ben"}[n%2] }

func (h *history) begin(*rapid.T) step { return h.Begin() }

// Begin returns a step that creates the next job.
func (h *history) Begin() step {
	if h.open == nil {
		h.open, h.ended = map[string]uint64{}, map[string]bool{}
	}
	n := h.jobs
	h.jobs++
	h.open[jobName(n)] = 1
	return writes(func(w *records.Write) { storetest.PutNew(w, jobName(n), ownerOf(n), fmt.Sprint("r", n/2)) })
}

// trials records trials of a batch, and the job's progress.
func (h *history) trials(t *rapid.T) step {
	job := some(t, h.open, h.jobs)
	if job == "" {
		return nil
	}
	workload := rapid.SampledFrom([]string{"conv", "pool"}).Draw(t, "workload")
	var events []*tilthv1.JobEvent
	for range rapid.IntRange(1, 3).Draw(t, "trials") {
		h.open[job]++
		events = append(events, &tilthv1.JobEvent{Sequence: h.open[job], Event: &tilthv1.JobEvent_Trial{Trial: &tilthv1.TrialRecorded{
			Measurement: h.measured(t, workload).GetMeasurement(), BatchId: job + ".0", BestSeconds: 1,
		}}})
	}
	return writes(func(w *records.Write) {
		var own []*tilthv1.JobEvent
		for _, e := range events {
			own = append(own, proto.CloneOf(e))
		}
		w.AppendTrials(job, "cpu", &tilthv1.TaskSpec{WorkloadDigest: records.Digest([]byte(workload))}, own)
		w.PutProgress(job, 1, &tilthv1.TaskProgress{Trials: uint32(len(events))})
	})
}

// measured draws a record, usually with a time of its own.
func (h *history) measured(t *rapid.T, workload string) *tilthv1.Record {
	h.second += int64(rapid.IntRange(0, 2).Draw(t, "later"))
	r := storetest.Record("cpu", workload, 1+h.second, float64(rapid.IntRange(0, 5).Draw(t, "latency")))
	trace := fmt.Appendf(nil, "candidate %d", rapid.IntRange(0, 4).Draw(t, "candidate"))
	h.trial++
	c := r.Measurement.Candidate
	c.Trial, c.Trace, c.Digest, c.Numerics = h.trial, trace, records.Digest(trace), rapid.SampledFrom(levels).Draw(t, "numerics")
	return r
}

// batch proposes a batch and leaves it open, closed, dead, reopened or dropped.
func (h *history) batch(t *rapid.T) step {
	job := some(t, h.open, h.jobs)
	if job == "" {
		return nil
	}
	h.open[job]++
	sequence := h.open[job]
	id := fmt.Sprintf("%s.0%d-life", job, rapid.IntRange(0, maxBatches-1).Draw(t, "batch"))
	row := &storev1.BatchRow{JobId: job, Proposal: sequence, EventSequence: sequence, Stage: storev1.Stage_STAGE_BUILD}
	proposed := &tilthv1.JobEvent{Sequence: sequence, Event: &tilthv1.JobEvent_Proposed{Proposed: &tilthv1.BatchProposed{
		BatchId: id, Candidates: []*tilthv1.Candidate{h.measured(t, "conv").GetMeasurement().GetCandidate()},
	}}}
	what := rapid.SampledFrom([]string{"open", "open", "closed", "dead", "dropped"}).Draw(t, "becomes")
	return writes(func(w *records.Write) {
		w.AppendEvent(job, proposed)
		w.ReopenBatch(id)
		w.PutBatch(id, row)
		switch what {
		case "closed", "dead":
			ended := proto.CloneOf(row)
			ended.Stage = map[string]storev1.Stage{"closed": storev1.Stage_STAGE_CLOSED, "dead": storev1.Stage_STAGE_DEAD}[what]
			w.CloseBatch(id, ended)
		case "dropped":
			w.DropBatch(id)
		}
	})
}

func (h *history) end(t *rapid.T) step {
	job := some(t, h.open, h.jobs)
	if job == "" {
		return nil
	}
	delete(h.open, job)
	h.ended[job] = true
	var n int
	_, _ = fmt.Sscanf(job, "job-%d", &n)
	return writes(func(w *records.Write) {
		w.PutJob(storetest.JobRow(job, tilthv1.JobState_JOB_STATE_DONE, records.RequestKey(ownerOf(n), fmt.Sprint("r", n/2))))
		w.EndJob(job, &storev1.EndedRow{Owner: ownerOf(n), StoredBytes: uint64(n)})
	})
}

// drop drops a job, and usually sweeps.
func (h *history) drop(t *rapid.T) step {
	job := some(t, h.ended, h.jobs)
	if job == "" {
		return nil
	}
	delete(h.ended, job)
	sweep := rapid.IntRange(0, 2).Draw(t, "sweep") > 0
	return func(ctx context.Context, s records.Store) error {
		if err := writes(func(w *records.Write) { w.DropJob(job) })(ctx, s); err != nil || !sweep {
			return err
		}
		return s.Sweep(ctx)
	}
}

func (h *history) agent(t *rapid.T) step {
	name := fmt.Sprint("board-", rapid.IntRange(0, maxAgents-1).Draw(t, "agent"))
	session := fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "session"))
	gone, cordoned := rapid.IntRange(0, 4).Draw(t, "gone") == 0, rapid.Bool().Draw(t, "cordoned")
	return writes(func(w *records.Write) {
		w.PutAgent(&tilthv1.Agent{Spec: &tilthv1.AgentSpec{Name: name}, Session: session})
		if gone {
			w.DropAgent(name)
		}
		if cordoned {
			w.PutDevice(name, &storev1.DeviceRow{Cordon: &tilthv1.Cordon{By: session}})
		} else {
			w.DropDevice(name)
		}
	})
}

func (h *history) add(t *rapid.T) step {
	r := h.measured(t, rapid.SampledFrom([]string{"conv", "pool"}).Draw(t, "workload"))
	r.Target = rapid.SampledFrom([]string{"cpu", "gpu"}).Draw(t, "target")
	return writes(func(w *records.Write) { w.AddRecord(proto.CloneOf(r)) })
}

func (h *history) suspect(t *rapid.T) step {
	w := rapid.Int64Range(0, 3).Draw(t, "since")
	return writes(func(to *records.Write) {
		to.SuspectBests("board-1", records.KeyOf(storetest.Record("", "", w, 1).GetMeasurement()).At(), "slow")
	})
}

// load imports some records.
func (h *history) load(t *rapid.T) step {
	n := rapid.Int64Range(1, 20).Draw(t, "imported")
	return func(ctx context.Context, s records.Store) error {
		_, _, err := s.Import(ctx, storetest.Numbered(n, io.EOF))
		return err
	}
}

func (h *history) prune(t *rapid.T) step {
	opts := records.PruneOptions{KeepBest: rapid.IntRange(0, 3).Draw(t, "best"), KeepRecent: rapid.IntRange(2, 9).Draw(t, "recent")}
	return func(ctx context.Context, s records.Store) error {
		_, _, err := s.Prune(ctx, opts)
		return err
	}
}
