package tuner

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"slices"
	"time"

	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/roofline"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/userkernel"
	"github.com/tilth-dev/tilth/internal/agent"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/transfer"
)

// job is the search state of a job. It is a function of the job's events alone, so any tuner that takes over
// the lease continues where the last one stopped.
type job struct {
	id     string
	budget *tilthv1.Budget
	time   budgetTime
	scheduler
	knowledge *transfer.Job
	// total is the weighted latency of all tasks when it last fell by more than a thousandth. stale counts
	// the trials since then.
	total float64
	stale int
	// inFlight counts the unrecorded trials of each batch.
	inFlight map[string]int
	// givenUp lists the dead letters, in order.
	givenUp []*tilthv1.DeadLetter
	// races holds the batches of finalists.
	races map[string]race
	// batches holds all known batches, so that the event of a batch proposed here is not counted twice.
	batches map[string]bool
	// proposals is the number of the next proposal.
	proposals uint64
	// behind counts the past proposals and trials whose events are still to come.
	behind int
}

// race is a batch of finalists.
type race struct{ remeasures bool }

// newJob starts the search of a job from earlier knowledge, which may be nil. A bug in the rules of a space
// fails the job, not the agent. It returns early with the error of ctx.
func newJob(ctx context.Context, work *tilthv1.SearchWork, h *transfer.History, observer Observer) (state *job, err error) {
	defer schedule.RecoverAs(&err)
	j := work.GetJob()
	spec := j.GetSpec()
	t, err := target.Decode(spec.GetTarget().GetDescriptor_())
	if err != nil {
		return nil, fmt.Errorf("tuner: job %s: %w", j.GetId(), err)
	}
	numerics, err := schedule.ParseNumerics(spec.GetNumerics())
	if err != nil {
		return nil, fmt.Errorf("tuner: job %s: %w", j.GetId(), err)
	}
	state = &job{
		id: j.GetId(), budget: spec.GetBudget(), time: newBudgetTime(work), knowledge: transfer.NewJob(h),
		inFlight: map[string]int{}, races: map[string]race{}, batches: map[string]bool{},
	}
	kernels, err := userkernel.ParseAll(spec.GetKernels())
	if err != nil {
		return nil, fmt.Errorf("tuner: job %s: %w", j.GetId(), err)
	}
	adder, err := NewKernelAdder(kernels, numerics)
	if err != nil {
		return nil, fmt.Errorf("tuner: job %s: %w", j.GetId(), err)
	}
	rates, unlimited := roofline.Decode(spec.GetTarget().GetMachine()) // without rates, tasks have no limits
	if unlimited != nil {
		rates = nominal
	}
	for k, ts := range spec.GetTasks() {
		w, err := expr.Parse(string(ts.GetWorkload()))
		if err != nil {
			return nil, fmt.Errorf("tuner: job %s: task %s: %w", j.GetId(), ts.GetName(), err)
		}
		s, err := registry.Space(w, t, numerics)
		if err != nil {
			return nil, fmt.Errorf("tuner: job %s: %w", j.GetId(), err)
		}
		if s, err = adder.Add(ctx, s); err != nil {
			return nil, fmt.Errorf("tuner: job %s: %w", j.GetId(), err)
		}
		search, err := NewSearch(s, state.knowledge, Options{
			Algorithm: spec.GetTuner(), Seed: taskSeed(spec.GetSeed(), ts.GetWorkloadDigest()), NoTransfer: spec.GetNoTransfer(),
			Imported: imported(s, ts), Ranked: observer.Ranked,
		})
		if err != nil {
			return nil, err
		}
		task := newTask(k, search, ts.GetWeight(), newKnown(h.Latencies(s)))
		task.rivals.standardDigest = ts.GetDefaultDigest()
		task.estimate = max(rates.Limits(w, ts.GetFlop()))
		if unlimited == nil {
			task.limit = task.estimate
		}
		state.tasks = append(state.tasks, task)
	}
	for _, p := range j.GetProgress() {
		state.behind += int(p.GetProposed() + p.GetTrials())
	}
	return state, nil
}

// imported returns the seeds of a task that its space contains.
func imported(s *searchspace.Space, ts *tilthv1.TaskSpec) (points []searchspace.Point) {
	for _, text := range ts.GetSeeds() {
		if p, ok := s.Parse(string(text)); ok {
			points = append(points, p)
		}
	}
	return points
}

// taskSeed derives an independent seed for each task of a job.
func taskSeed(seed uint64, digest string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(digest))
	return h.Sum64() ^ seed
}

// remaining returns how many more trials may be proposed.
func (j *job) remaining() int {
	if j.budget.GetTrials() == 0 {
		return math.MaxInt32
	}
	left := int(j.budget.GetTrials())
	for _, t := range j.tasks {
		left -= t.proposed
	}
	return max(0, left)
}

// over reports whether there is nothing left to wait for or to propose, and the reason.
func (j *job) over() (reason string, over bool) {
	if len(j.inFlight) > 0 {
		return "", false
	}
	switch {
	case j.remaining() == 0:
		return "trials spent", true
	case j.stopped():
		return fmt.Sprintf("no progress in %d trials", j.stale), true
	case j.next() != nil:
		return "", false
	}
	for _, t := range j.tasks {
		if !t.exhausted {
			return "every task has converged", true
		}
	}
	return "every candidate of every task was tried", true
}

// stopped reports whether the job ends early because it makes no progress.
func (j *job) stopped() bool {
	n := int(j.budget.GetEarlyStop())
	return n > 0 && j.stale >= n
}

// minProgress is the relative decrease of the weighted latency that counts as progress.
const minProgress = 1e-3

// progressed updates the count of trials without progress.
func (j *job) progressed(first bool) {
	total := 0.0
	for _, t := range j.tasks {
		total += t.weight * t.best
	}
	j.stale++
	if first || total < (1-minProgress)*j.total {
		j.total, j.stale = total, 0
	}
}

// failure explains why no task has a verified candidate. It returns nil if one has, or if nothing was tried
// and given up.
func (j *job) failure() error {
	var failed *task
	for _, t := range j.tasks {
		if t.best > 0 {
			return nil
		}
		if failed == nil && t.failures.total() > 0 {
			failed = t
		}
	}
	if failed == nil && len(j.givenUp) > 0 {
		last := j.givenUp[len(j.givenUp)-1]
		return fmt.Errorf("no trial was measured: batches given up: %d, the last after %d attempts: %s", len(j.givenUp), last.GetAttempts(), last.GetMessage())
	}
	if failed == nil {
		return nil
	}
	return fmt.Errorf("none of %d trials of task %d was correct: %v", failed.failures.total(), failed.index, &failed.failures)
}

// proposed records a batch that the tracker accepted.
func (j *job) proposed(batchID string, t *task, trials int, mode tilthv1.BatchMode, remeasured string) {
	if j.batches[batchID] {
		return
	}
	switch {
	case remeasured != "":
		j.races[batchID], t.doubt = race{remeasures: true}, nil
	case mode == tilthv1.BatchMode_BATCH_MODE_FINALISTS:
		j.races[batchID], t.rivals.raced = race{}, true
	}
	j.batches[batchID] = true
	j.inFlight[batchID] = trials
	j.proposals++
	t.proposed += trials
}

// apply applies one event to the state.
func (j *job) apply(e *tilthv1.JobEvent) {
	switch e := e.GetEvent().(type) {
	case *tilthv1.JobEvent_Proposed:
		j.behind -= len(e.Proposed.GetCandidates())
		t := j.tasks[e.Proposed.GetTaskIndex()]
		if !j.batches[e.Proposed.GetBatchId()] && e.Proposed.GetMode() != tilthv1.BatchMode_BATCH_MODE_FINALISTS {
			for _, c := range e.Proposed.GetCandidates() {
				t.search.Observe(Trial{Digest: c.GetDigest(), Origin: string(c.GetOrigin())})
			}
		}
		j.proposed(e.Proposed.GetBatchId(), t, len(e.Proposed.GetCandidates()), e.Proposed.GetMode(), e.Proposed.GetRemeasured())
	case *tilthv1.JobEvent_Trial:
		j.behind--
		j.recorded(e.Trial)
	case *tilthv1.JobEvent_Suspected:
		j.tasks[e.Suspected.GetTaskIndex()].doubt = e.Suspected
	case *tilthv1.JobEvent_DeadLetter:
		delete(j.inFlight, e.DeadLetter.GetBatchId())
		j.givenUp = append(j.givenUp, e.DeadLetter)
	case *tilthv1.JobEvent_Retried:
		j.inFlight[e.Retried.GetBatchId()] = int(e.Retried.GetTrials())
		j.givenUp = slices.DeleteFunc(j.givenUp, func(d *tilthv1.DeadLetter) bool { return d.GetBatchId() == e.Retried.GetBatchId() })
	}
}

func (j *job) recorded(e *tilthv1.TrialRecorded) {
	t := j.tasks[e.GetTaskIndex()]
	m := t.costed(e.GetMeasurement())
	if race, ok := j.races[e.GetBatchId()]; ok {
		t.recorded++
		if race.remeasures {
			t.rivals.replace(m)
		}
		t.confirm(m, e.GetBestSeconds())
	} else {
		j.learn(t, m)
	}
	if n := j.inFlight[e.GetBatchId()] - 1; n > 0 {
		j.inFlight[e.GetBatchId()] = n
	} else {
		delete(j.inFlight, e.GetBatchId())
	}
}

// learn applies the first measurement of a candidate.
func (j *job) learn(t *task, m *tilthv1.Measurement) {
	before := t.best
	t.record(m)
	t.rivals.add(m)
	j.progressed(before == 0 && t.best > 0)
	t.search.Observe(Trial{
		Digest: m.GetCandidate().GetDigest(), Origin: string(m.GetCandidate().GetOrigin()),
		LatencySeconds: m.GetLatencySeconds(), Failed: m.GetError() != tilthv1.ErrorClass_ERROR_CLASS_NONE,
	})
}

// budgetTime tracks the time budget of a job. The tracker counts the time and ends the job; the last status
// that it sent is enough to plan with.
type budgetTime struct {
	// limit is the whole budget; 0 means no limit.
	limit time.Duration
	// left was the time left at reportedAt, when the tracker last reported it. runs reports whether the
	// clock was running.
	left       time.Duration
	reportedAt time.Time
	runs       bool
	// start is the start of the clock, shifted by the time for which the job was paused or could not proceed.
	start time.Time
}

func newBudgetTime(work *tilthv1.SearchWork) budgetTime {
	limit, left, now := work.GetJob().GetSpec().GetBudget().GetTime().AsDuration(), work.GetTimeLeft().AsDuration(), time.Now()
	return budgetTime{limit: limit, left: left, start: now.Add(left - limit), reportedAt: now, runs: true}
}

// applyStatus applies a status from the tracker.
func (b *budgetTime) applyStatus(s *tilthv1.JobStatus, now time.Time) {
	spent := s.GetTimeSpent().AsDuration()
	b.left, b.reportedAt, b.runs, b.start = b.limit-spent, now, s.GetTimeRuns(), now.Add(-spent)
}

// leftAt estimates the time left. limited is false if the job has no time budget.
func (b *budgetTime) leftAt(now time.Time) (left time.Duration, limited bool) {
	left = b.left
	if b.runs {
		left -= now.Sub(b.reportedAt)
	}
	return left, b.limit > 0
}

// history reads the records that existed before the job, of its target and of sibling targets. It returns nil
// if the job or its search does not learn from records. It is the same for every tuner that holds the job.
func (h *Handler) history(ctx context.Context, j *tilthv1.Job) (*transfer.History, error) {
	if j.GetSpec().GetTuner() != Best {
		return nil, nil
	}
	own, err := target.Decode(j.GetSpec().GetTarget().GetDescriptor_())
	if err != nil {
		return nil, nil // the job fails with its own error
	}
	if j.GetSpec().GetNoTransfer() { // a given model still counts
		return transfer.NewHistory(own, nil).Use(transfer.Models{Given: h.Models.Given}), nil
	}
	var collector *transfer.Collector
	err = agent.Report(ctx, h.Logger, "read the records", func(ctx context.Context) error {
		siblings, err := h.siblings(ctx, j)
		if err != nil {
			return err
		}
		collector = transfer.NewCollector(own, siblings...)
		return h.records(ctx, j.GetId(), before(j), collector.Add)
	})
	if err != nil {
		return nil, err
	}
	return collector.History().Use(h.Models), nil
}

// maxSiblingJobs bounds the jobs whose targets are siblings.
const maxSiblingJobs = 1000

// siblings returns the targets of jobs submitted before j.
func (h *Handler) siblings(ctx context.Context, j *tilthv1.Job) ([]*target.Target, error) {
	response, err := tilthv1.NewJobServiceClient(h.Conn).ListJobs(ctx, &tilthv1.ListJobsRequest{Limit: maxSiblingJobs})
	if err != nil {
		return nil, err
	}
	var list []*target.Target
	for _, other := range response.GetJobs() {
		if !other.GetCreatedAt().AsTime().Before(j.GetCreatedAt().AsTime()) {
			continue
		}
		if t, err := target.Decode(other.GetSpec().GetTarget().GetDescriptor_()); err == nil {
			list = append(list, t)
		}
	}
	return list, nil
}

// before returns a filter of the records that existed when a job was submitted.
func before(j *tilthv1.Job) func(*tilthv1.Record) bool {
	made := j.GetCreatedAt().AsTime()
	return func(r *tilthv1.Record) bool {
		return r.GetJobId() != j.GetId() && r.GetMeasurement().GetAt().AsTime().Before(made)
	}
}

// records calls visit for every wanted record that the job may learn from. The first record of each workload
// is visited even if it is unwanted, because it carries the workload's text.
func (h *Handler) records(ctx context.Context, jobID string, wanted func(*tilthv1.Record) bool, visit func(*tilthv1.Record)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := tilthv1.NewRecordServiceClient(h.Conn).ListRecords(ctx, &tilthv1.ListRecordsRequest{JobId: jobID})
	if err != nil {
		return err
	}
	var text []byte
	for {
		response, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		r := response.GetRecord()
		if len(r.GetWorkload()) > 0 {
			text = r.GetWorkload()
		}
		if wanted(r) {
			r.Workload = text
			visit(r)
		}
	}
}
