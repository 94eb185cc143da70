package loadtest

import (
	"context"
	"sync"

	"github.com/tilth-dev/tilth/internal/agent"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// search is a tuner's lease on a job. It follows the job's events and keeps batches in flight until the job has its
// trials.
type search struct {
	*fleet
	line   *line
	token  *tilthv1.LeaseToken
	job    *tilthv1.Job
	client tilthv1.SearchServiceClient

	mu sync.Mutex
	// Pending batches: the number of candidates without a trial.
	open     map[string]int
	batches  uint64 // proposed, according to the events
	proposed int    // candidates, according to the events
	sent     uint64 // batches proposed by this tuner or, before it, by others
	// changed receives after each event.
	changed chan struct{}
}

// search tunes a job until it has its trials, and then submits the next one.
func (f *fleet) search(ctx context.Context, l *line, token *tilthv1.LeaseToken, work *tilthv1.SearchWork) error {
	s := &search{
		fleet: f, line: l, token: token, job: work.GetJob(), client: tilthv1.NewSearchServiceClient(l),
		open: map[string]int{}, changed: make(chan struct{}, 1),
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var following sync.WaitGroup
	following.Go(func() {
		if err := agent.Watch(ctx, l, f.log, &tilthv1.WatchJobRequest{JobId: s.job.GetId()}, s.visit, nil); err != nil {
			cancel(err)
		}
	})
	err := s.run(ctx)
	cancel(nil)
	following.Wait()
	return err
}

// visit handles one event.
func (s *search) visit(e *tilthv1.JobEvent) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case e.GetProposed() != nil:
		p := e.GetProposed()
		s.open[p.GetBatchId()] = len(p.GetCandidates())
		s.batches++
		s.proposed += len(p.GetCandidates())
	case e.GetTrial() != nil:
		id := e.GetTrial().GetBatchId()
		if s.open[id]--; s.open[id] == 0 {
			delete(s.open, id)
		}
	case e.GetDeadLetter() != nil:
		delete(s.open, e.GetDeadLetter().GetBatchId())
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
	return nil
}

func (s *search) run(ctx context.Context) error {
	before := 0
	for _, p := range s.job.GetProgress() {
		before += int(p.GetProposed())
	}
	// Like a real tuner, it learns the proposals of earlier tuners from the events.
	if err := s.until(ctx, func() bool { return s.proposed >= before }); err != nil {
		return err
	}
	s.sent = s.batches
	for done := before; done < s.Trials; done += s.Batch {
		if err := s.until(ctx, func() bool { return s.sent-s.batches+uint64(len(s.open)) < uint64(s.InFlight) }); err != nil {
			return err
		}
		if err := s.pace.wait(ctx, s.Batch); err != nil {
			return err
		}
		if err := s.propose(ctx); err != nil {
			return err
		}
	}
	if err := s.until(ctx, func() bool { return s.sent == s.batches && len(s.open) == 0 }); err != nil {
		return err
	}
	return s.finish(ctx)
}

// until waits for events until holds returns true.
func (s *search) until(ctx context.Context, holds func() bool) error {
	for {
		s.mu.Lock()
		done := holds()
		s.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-s.changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (s *search) propose(ctx context.Context) error {
	task := s.line.dice.below(len(s.job.GetSpec().GetTasks()))
	request := &tilthv1.ProposeBatchRequest{
		Lease: s.token, Proposal: s.sent, TaskIndex: uint32(task), Candidates: s.candidates(s.job.GetId(), s.sent),
	}
	var response *tilthv1.ProposeBatchResponse
	err := agent.Report(ctx, s.log, "ProposeBatch", func(ctx context.Context) (err error) {
		response, err = s.client.ProposeBatch(ctx, request)
		return err
	})
	if err != nil {
		return err
	}
	s.ledger.propose(s.job.GetId(), task, response.GetFirstTrial(), len(request.GetCandidates()))
	s.mu.Lock()
	s.sent++
	s.mu.Unlock()
	return nil
}

func (s *search) finish(ctx context.Context) error {
	err := agent.Report(ctx, s.log, "FinishJob", func(ctx context.Context) error {
		_, err := s.client.FinishJob(ctx, &tilthv1.FinishJobRequest{
			Lease: s.token, State: tilthv1.JobState_JOB_STATE_DONE, Reason: "budget spent",
		})
		return err
	})
	if err != nil {
		return err
	}
	return s.submit(ctx, s.line)
}
