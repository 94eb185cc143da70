package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// Durations of the simulated work on a batch and a trial.
const (
	buildTime = 10 * time.Millisecond
	trialTime = 25 * time.Millisecond
)

// A candidate's digest determines its outcome for every builder and runner: about one in ten fails to
// compile, and one in ten crashes.
func refusedByCompiler(digest string) bool {
	return digest[0] == '0' || digest[:2] < "1a" && digest[0] == '1'
}

func crashes(digest string) bool { return digest[0] == 'f' }

// build reports a batch as built, except for the candidates that the compiler refuses.
func (p *simulatedAgent) build(ctx context.Context, token *tilthv1.LeaseToken, work *tilthv1.BuildWork) error {
	if err := retry.Sleep(ctx, buildTime); err != nil {
		return err
	}
	r := &tilthv1.ReportBuildRequest{Lease: token}
	built := false
	for _, c := range work.GetCandidates() {
		o := &tilthv1.BuildOutcome{Candidate: c.GetDigest(), Error: tilthv1.ErrorClass_ERROR_CLASS_NONE, BuildSeconds: buildTime.Seconds()}
		if refusedByCompiler(c.GetDigest()) {
			o.Error, o.Message = tilthv1.ErrorClass_ERROR_CLASS_COMPILE_ERROR, fmt.Sprintf("refused, %d", p.mark())
		} else {
			built = true
		}
		r.Outcomes = append(r.Outcomes, o)
	}
	for {
		if built {
			ref, err := p.upload(ctx, work.GetBatchId())
			if err != nil {
				return err
			}
			r.Artifacts = []*tilthv1.ArtifactRef{ref}
		}
		err := p.report(ctx, "ReportBuild", func(ctx context.Context) error {
			_, err := tilthv1.NewBuildServiceClient(p.conn).ReportBuild(ctx, r)
			return err
		})
		if !agent.MissingArtifact(err) {
			return err
		}
	}
}

// measure reports the first half of a batch's trials early, and then the rest.
func (p *simulatedAgent) measure(ctx context.Context, token *tilthv1.LeaseToken, work *tilthv1.MeasureWork) error {
	if err := p.fetch(ctx, work.GetArtifacts()); err != nil {
		return err
	}
	candidates := work.GetCandidates()
	half := len(candidates) / 2
	for _, part := range [][]*tilthv1.Candidate{candidates[:half], candidates[half:]} {
		if len(part) == 0 {
			continue
		}
		r := &tilthv1.ReportMeasurementsRequest{Lease: token}
		for _, c := range part {
			if err := retry.Sleep(ctx, trialTime); err != nil {
				return err
			}
			r.Measurements = append(r.Measurements, p.outcome(c))
		}
		err := p.report(ctx, "ReportMeasurements", func(ctx context.Context) error {
			_, err := tilthv1.NewMeasureServiceClient(p.conn).ReportMeasurements(ctx, r)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// outcome returns a measurement with a unique latency or message.
func (p *simulatedAgent) outcome(c *tilthv1.Candidate) *tilthv1.Measurement {
	mark := p.mark()
	m := &tilthv1.Measurement{
		Candidate: &tilthv1.Candidate{Digest: c.GetDigest(), Trial: c.GetTrial()}, Error: tilthv1.ErrorClass_ERROR_CLASS_NONE,
		RunSeconds: trialTime.Seconds(), CalibrationRatio: 1, At: timestamppb.New(time.Now().Add(p.Skew)),
	}
	if crashes(c.GetDigest()) {
		m.Error, m.Message = tilthv1.ErrorClass_ERROR_CLASS_CRASH, fmt.Sprintf("crashed, %d", mark)
		return m
	}
	m.LatencySeconds = 1e-3 + float64(mark)*1e-12
	m.SamplesSeconds = []float64{m.LatencySeconds}
	m.Interval = &tilthv1.Interval{LowSeconds: m.LatencySeconds, HighSeconds: m.LatencySeconds}
	return m
}

// A job has jobTrials trials of jobTasks tasks in turn, proposed in batches of batchSize with inFlight
// batches in progress.
const (
	jobTasks  = 2
	jobTrials = 160
	batchSize = 4
	inFlight  = 6
)

// search submits a job's proposals, which are derived from their numbers, and completes it when all trials are
// accounted for. Like a real tuner, it resumes after an earlier tuner by the job's events.
func (p *simulatedAgent) search(ctx context.Context, token *tilthv1.LeaseToken, job *tilthv1.Job) error {
	var s tally
	client := tilthv1.NewSearchServiceClient(p.conn)
	before := 0
	for _, task := range job.GetProgress() {
		before += int(task.GetProposed())
	}
	err := agent.Watch(ctx, p.conn, p.Log, &tilthv1.WatchJobRequest{JobId: job.GetId()}, func(e *tilthv1.JobEvent) error {
		s.add(e)
		for s.proposed >= before && s.batches+s.sent < jobTrials/batchSize && s.sent+len(s.open) < inFlight {
			if err := p.propose(ctx, client, token, job, uint64(s.batches+s.sent)); err != nil {
				return err
			}
			s.sent++
		}
		if s.batches == jobTrials/batchSize && len(s.open) == 0 {
			return errAllDone
		}
		return nil
	}, nil)
	if !errors.Is(err, errAllDone) {
		return err
	}
	return p.report(ctx, "FinishJob", func(ctx context.Context) error {
		_, err := client.FinishJob(ctx, &tilthv1.FinishJobRequest{Lease: token, State: tilthv1.JobState_JOB_STATE_DONE, Reason: "budget spent"})
		return err
	})
}

var errAllDone = errors.New("all trials are accounted for")

func (p *simulatedAgent) propose(ctx context.Context, client tilthv1.SearchServiceClient, token *tilthv1.LeaseToken, job *tilthv1.Job, n uint64) error {
	r := &tilthv1.ProposeBatchRequest{Lease: token, Proposal: n, TaskIndex: uint32(n % jobTasks)}
	for i := range batchSize {
		trace := fmt.Appendf(nil, "tilth-trace 1\n%s %d %d\n", job.GetSpec().GetName(), n, i)
		r.Candidates = append(r.Candidates, &tilthv1.Candidate{Digest: records.Digest(trace), Trace: trace, Numerics: wire.NumericsStrict})
	}
	return p.report(ctx, "ProposeBatch", func(ctx context.Context) error {
		_, err := client.ProposeBatch(ctx, r)
		return err
	})
}

// tally summarises a job's events.
type tally struct {
	batches, proposed int            // according to the events
	sent              int            // proposed batches without an event yet
	open              map[string]int // by batch: number of candidates without a trial
}

func (s *tally) add(e *tilthv1.JobEvent) {
	switch v := e.GetEvent().(type) {
	case *tilthv1.JobEvent_Proposed:
		if s.open == nil {
			s.open = map[string]int{}
		}
		s.open[v.Proposed.GetBatchId()] = len(v.Proposed.GetCandidates())
		s.batches++
		s.proposed += len(v.Proposed.GetCandidates())
		s.sent = max(0, s.sent-1)
	case *tilthv1.JobEvent_Trial:
		if s.open[v.Trial.GetBatchId()]--; s.open[v.Trial.GetBatchId()] == 0 {
			delete(s.open, v.Trial.GetBatchId())
		}
	case *tilthv1.JobEvent_DeadLetter:
		delete(s.open, v.DeadLetter.GetBatchId())
	}
}
