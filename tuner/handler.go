package tuner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/transfer"
)

// Config configures a Handler.
type Config struct {
	// Conn is the connection to the tracker.
	Conn grpc.ClientConnInterface
	// Lock, if set, is held while searching, so that nothing is timed on this machine meanwhile.
	Lock   func(context.Context) (release func(), err error)
	Logger *slog.Logger
	// Models provides the cost models.
	Models transfer.Models
	// BatchSize is the maximum number of candidates built and measured together; 0 means wire.BatchCandidates.
	BatchSize int
	// Observer receives search statistics; nil discards them.
	Observer Observer
	// Reader, if set, enables reading models here.
	Reader Reader
	// Ahead is the number of batches kept in flight, so that search, build and measurement overlap; 0 means 3.
	Ahead int
}

// Handler does the work of the tuner agent: one leased job per call.
type Handler struct {
	Config
	// reading admits one model at a time, because a large one takes much memory.
	reading chan struct{}
}

// NewHandler returns a handler. Zero fields of the configuration get their defaults.
func NewHandler(c Config) *Handler {
	c.BatchSize = cmp.Or(c.BatchSize, wire.BatchCandidates)
	c.Ahead = cmp.Or(c.Ahead, 3)
	if c.Lock == nil {
		c.Lock = func(context.Context) (func(), error) { return func() {}, nil }
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.Observer = cmp.Or[Observer](c.Observer, nopObserver{})
	return &Handler{Config: c, reading: make(chan struct{}, 1)}
}

// Handle tunes the job of a lease until its trials are spent or the tracker ends it, or reads the model of a lease. It
// returns an error if the lease was lost or ctx ended. Another tuner then continues from the job's events.
func (h *Handler) Handle(ctx context.Context, work *tilthv1.LeaseWorkResponse) error {
	if model := work.GetModel(); model != nil {
		return h.read(ctx, work.GetLease(), model)
	}
	if work.GetSearch() == nil {
		return errors.New("tuner: the lease is not for searching")
	}
	err := h.tune(ctx, work)
	if agent.History(err) {
		h.Logger.Warn("the job's history was replaced, reading it again", "job", work.GetSearch().GetJob().GetId(), "error", err)
		err = h.tune(ctx, work)
	}
	return err
}

// tune tunes a job, starting from its first event.
func (h *Handler) tune(ctx context.Context, work *tilthv1.LeaseWorkResponse) error {
	search := work.GetSearch()
	known, err := h.history(ctx, search.GetJob())
	if err != nil {
		return err
	}
	j, err := newJob(ctx, search, known, h.Observer)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return h.finish(ctx, work.GetLease(), tilthv1.JobState_JOB_STATE_FAILED, err.Error())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &round{Handler: h, job: j, lease: work.GetLease()}
	events := make(chan update)
	watching := make(chan error, 1)
	go func() { watching <- h.watch(ctx, search.GetJob().GetId(), events) }()
	err = r.run(ctx, events, watching)
	cancel()
	for range events { // the watcher closes it on return
	}
	return err
}

// update is either an event of a job or its status; the other field is nil.
type update struct {
	event  *tilthv1.JobEvent
	status *tilthv1.JobStatus
}

// watch sends the job's events, from the first on, and its status. It closes the channel at the end, and
// returns nil when the job has ended.
func (h *Handler) watch(ctx context.Context, jobID string, all chan<- update) error {
	defer close(all)
	send := func(n update) error {
		select {
		case all <- n:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return agent.Watch(ctx, h.Conn, h.Logger, &tilthv1.WatchJobRequest{JobId: jobID},
		func(e *tilthv1.JobEvent) error { return send(update{event: e}) },
		func(s *tilthv1.JobStatus) error { return send(update{status: s}) })
}

func (h *Handler) finish(ctx context.Context, lease *tilthv1.LeaseToken, state tilthv1.JobState, reason string) error {
	client := tilthv1.NewSearchServiceClient(h.Conn)
	return agent.Report(ctx, h.Logger, "finish job "+lease.GetSubject(), func(ctx context.Context) error {
		_, err := client.FinishJob(ctx, &tilthv1.FinishJobRequest{Lease: lease, State: state, Reason: reason})
		return err
	})
}

// round is one lease of a job.
type round struct {
	*Handler
	job   *job
	lease *tilthv1.LeaseToken
	// warned is set once the warning about an unusable cost model was logged.
	warned bool
}

func (r *round) run(ctx context.Context, events <-chan update, watching <-chan error) error {
	for {
		if r.job.behind <= 0 {
			err := r.propose(ctx)
			if broken, ok := errors.AsType[*brokenSearch](err); ok {
				return r.finish(ctx, r.lease, tilthv1.JobState_JOB_STATE_FAILED, broken.Error())
			}
			if err != nil {
				return err
			}
			if reason, over := r.job.over(); over {
				if err := r.job.failure(); err != nil {
					return r.finish(ctx, r.lease, tilthv1.JobState_JOB_STATE_FAILED, err.Error())
				}
				return r.finish(ctx, r.lease, tilthv1.JobState_JOB_STATE_DONE, reason)
			}
		}
		select {
		case n, ok := <-events:
			if !ok {
				if err := <-watching; err != nil { // the job was cancelled, or the tracker refused to continue
					return fmt.Errorf("tuner: events of job %s: %w", r.job.id, err)
				}
				return nil
			}
			if n.status != nil {
				r.job.time.applyStatus(n.status, time.Now())
				continue
			}
			r.job.apply(n.event)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// propose submits batches until enough are in flight or nothing is left to propose.
func (r *round) propose(ctx context.Context) error {
	for len(r.job.inFlight) < r.Ahead {
		b, err := r.nextBatch(ctx)
		if err != nil || b == nil {
			return err
		}
		request := &tilthv1.ProposeBatchRequest{
			Lease: r.lease, Proposal: r.job.proposals, TaskIndex: uint32(b.task.index), Candidates: b.wire(), Mode: b.mode(),
			SearchSeconds: b.seconds, Remeasured: b.remeasured, PredictedSeconds: b.predicted(),
		}
		client := tilthv1.NewSearchServiceClient(r.Conn)
		var response *tilthv1.ProposeBatchResponse
		err = agent.Report(ctx, r.Logger, "propose batch", func(ctx context.Context) (err error) {
			response, err = client.ProposeBatch(ctx, request)
			return err
		})
		if err != nil {
			return err
		}
		r.job.proposed(response.GetBatchId(), b.task, len(request.GetCandidates()), b.mode(), b.remeasured)
	}
	return nil
}

// nextBatch returns a batch that remeasures doubtful best candidates, a batch of finalists if the job is about to
// end, or else a batch of the search. It returns nil if no batch is available now.
func (r *round) nextBatch(ctx context.Context) (*batch, error) {
	if b := r.job.remeasure(); b != nil {
		return b, nil
	}
	b, waits := r.job.race(time.Now())
	if b != nil || waits || r.job.stopped() {
		return b, nil
	}
	return r.search(ctx)
}

// firstBatch is the minimum size of a task's batches. Later ones are larger because the search learns less from each
// candidate. An unknown task starts with one trial of its default schedule, so that the latency of the whole model is
// known early, and each further trial goes where it lowers that latency most. A known one starts with the default and
// its fastest earlier candidates.
const firstBatch = 4

// A batch has an overhead of a tenth of a second for starting the compiler and linking, so it should be
// large. Its duration is limited to batchSeconds because other tasks and the search wait for it, but it has
// at least minBatch candidates.
const (
	batchSeconds = 1.5
	minBatch     = 8
)

// batchSize returns the maximum size of the next batch of a task.
func (r *round) batchSize(t *task) int {
	limit := r.BatchSize
	if t.proposed == 0 && t.known.best == 0 {
		limit = 1
	}
	if t.seconds > 0 {
		limit = min(limit, max(minBatch, int(batchSeconds*float64(t.recorded)/t.seconds)))
	}
	return min(limit, r.job.searchable(), max(firstBatch, t.proposed))
}

// batch holds the candidates of a search with its duration, or finalists.
type batch struct {
	task       *task
	candidates []Candidate
	finalists  []*tilthv1.Candidate
	// remeasured is the reason for a batch that remeasures a doubtful best candidate.
	remeasured string
	seconds    float64
}

func (b *batch) mode() tilthv1.BatchMode {
	if b.finalists != nil {
		return tilthv1.BatchMode_BATCH_MODE_FINALISTS
	}
	return tilthv1.BatchMode_BATCH_MODE_SEARCH
}

// search draws the next batch while nothing is timed on this machine. It returns nil if nothing is left to propose.
func (r *round) search(ctx context.Context) (*batch, error) {
	release, err := r.Lock(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	began := time.Now()
	for {
		t := r.job.next()
		if t == nil || r.job.remaining() == 0 {
			return nil, nil
		}
		candidates, err := t.propose(r.batchSize(t))
		if err != nil {
			return nil, &brokenSearch{fmt.Errorf("tuner: task %d: %w", t.index, err)}
		}
		if err := r.job.knowledge.Err(); err != nil && !r.warned { // its file is broken, for example
			r.warned = true
			r.Logger.Warn("the cost model cannot be used, ranking by the analytic cost", "job", r.job.id, "error", err)
		}
		if len(candidates) > 0 {
			b := &batch{task: t, candidates: candidates, seconds: time.Since(began).Seconds()}
			r.Observer.Searched(len(candidates), b.seconds)
			return b, nil
		}
		t.exhausted = true
	}
}

// brokenSearch reports a bug in a search, which other tuners would encounter, too.
type brokenSearch struct{ error }

func (e *brokenSearch) Unwrap() error { return e.error }

// predicted returns the latencies that the search predicts, one per candidate, or nil if it predicts none.
// Candidates measured before have no prediction.
func (b *batch) predicted() []float32 {
	list := make([]float32, len(b.candidates))
	for k, c := range b.candidates {
		list[k] = float32(min(c.PredictedSeconds, math.MaxFloat32))
	}
	if !slices.ContainsFunc(list, func(s float32) bool { return s > 0 }) {
		return nil
	}
	return list
}

func (b *batch) wire() []*tilthv1.Candidate {
	if b.finalists != nil {
		return b.finalists
	}
	list := make([]*tilthv1.Candidate, len(b.candidates))
	for k, c := range b.candidates {
		list[k] = &tilthv1.Candidate{
			Digest: c.Digest, Trace: c.Trace, Origin: []byte(c.Origin), Numerics: c.Numerics.String(), Multiplications: c.Multiplications, Algorithms: c.Algorithms,
		}
	}
	return list
}

// Observer receives search statistics. Its methods are called from several goroutines and must not block.
type Observer interface {
	// Searched reports one search for a batch.
	Searched(candidates int, seconds float64)
	// Ranked reports how the model ranked a measured candidate; see Options.Ranked.
	Ranked(right, wrong int)
}

// nopObserver is an Observer that discards everything.
type nopObserver struct{}

// Searched implements Observer.
func (nopObserver) Searched(int, float64) {}

// Ranked implements Observer.
func (nopObserver) Ranked(int, int) {}

// Reader extracts the tasks of untrusted models. The report that it returns, with tasks or with the failure
// of the model, has no lease yet. The error is the cause with which ctx ended, or another failure that is not
// the model's fault.
type Reader interface {
	Read(ctx context.Context, work *tilthv1.ModelWork) (*tilthv1.ReportModelRequest, error)
}

// read reads the model of a lease and reports its tasks. It returns an error if reporting failed or ctx
// ended. The lease is then still open.
func (h *Handler) read(ctx context.Context, lease *tilthv1.LeaseToken, work *tilthv1.ModelWork) error {
	if h.Reader == nil {
		return errors.New("tuner: the lease is for reading a model, which this tuner does not support")
	}
	report, err := h.readAlone(ctx, work)
	if ctx.Err() != nil {
		return fmt.Errorf("tuner: job %s: %w", work.GetJob().GetId(), context.Cause(ctx))
	}
	if err != nil {
		report = &tilthv1.ReportModelRequest{InfraMessage: agent.FailureMessage(err.Error())}
	}
	report.Lease = lease
	if why := report.GetFailure() + report.GetInfraMessage(); why != "" {
		h.Logger.Warn("model not read", "job", work.GetJob().GetId(), "error", why)
	}
	err = h.reportModel(ctx, report)
	if status.Code(err) == codes.InvalidArgument && len(report.GetTasks()) > 0 { // every tuner would get the same answer
		why := "the tracker refuses the model's tasks: " + status.Convert(err).Message()
		err = h.reportModel(ctx, &tilthv1.ReportModelRequest{Lease: lease, Failure: agent.FailureMessage(why)})
	}
	return err
}

func (h *Handler) reportModel(ctx context.Context, report *tilthv1.ReportModelRequest) error {
	client := tilthv1.NewSearchServiceClient(h.Conn)
	return agent.Report(ctx, h.Logger, "report model of job "+report.GetLease().GetSubject(), func(ctx context.Context) error {
		_, err := client.ReportModel(ctx, report)
		return err
	})
}

// readAlone reads a model while no other is read here and nothing is timed on this machine.
func (h *Handler) readAlone(ctx context.Context, work *tilthv1.ModelWork) (*tilthv1.ReportModelRequest, error) {
	select {
	case h.reading <- struct{}{}:
		defer func() { <-h.reading }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	release, err := h.Lock(ctx)
	if err != nil {
		return nil, fmt.Errorf("tuner: waiting for the machine: %w", err)
	}
	defer release()
	return h.Reader.Read(ctx, work)
}
