package tracker_test

import (
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker"
)

const finalists = tilthv1.BatchMode_BATCH_MODE_FINALISTS

// sampled returns a verified measurement of n equal samples.
func sampled(c *tilthv1.Candidate, latency float64, n int) *tilthv1.Measurement {
	m := ok(c, latency)
	for range n - 1 {
		m.SamplesSeconds = append(m.SamplesSeconds, latency)
	}
	return m
}

// race proposes candidates that were measured before and returns the runner's work, across a restart of the tracker.
func (f *trackerFarm) race(lease *tilthv1.LeaseToken, proposal uint64, names ...string) *tilthv1.LeaseWorkResponse {
	f.Helper()
	must[*tilthv1.ProposeBatchResponse](f)(f.search.ProposeBatch(f.Context(), &tilthv1.ProposeBatchRequest{
		Lease: lease, Proposal: proposal, Candidates: candidates(names...), Mode: finalists,
	}))
	f.reportBuild(f.buildReport(f.mustLease(f.builder())))
	f.restart()
	return f.mustLease(f.runner())
}

func TestFinalistsDecideWhatIsBest(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	job := f.submit("r1", spec("conv"))
	tuner := f.mustLease(f.tuner())
	f.propose(tuner.GetLease(), 0, 0, "lucky", "good")
	f.reportBuild(f.buildReport(f.mustLease(f.builder())))
	first := f.mustLease(f.runner())
	cs := first.GetMeasure().GetCandidates()
	if first.GetMeasure().GetBest() != nil {
		t.Errorf("the first batch has an incumbent: %v", first.GetMeasure().GetBest())
	}
	f.report(first.GetLease(), sampled(cs[0], 0.8, 10), sampled(cs[1], 1, 10))

	race := f.race(tuner.GetLease(), 1, "lucky", "good")
	work := race.GetMeasure()
	if work.GetMode() != finalists || work.GetBest().GetCandidate().GetDigest() != cs[0].GetDigest() || len(work.GetBest().GetSamplesSeconds()) != 10 {
		t.Errorf("the runner got mode %v and the incumbent %v", work.GetMode(), work.GetBest())
	}
	f.report(race.GetLease(), sampled(work.GetCandidates()[0], 1.2, 20), sampled(work.GetCandidates()[1], 1.1, 20))
	p := f.job(job.GetId()).GetProgress()[0]
	if p.GetBestSeconds() != 1.1 || string(p.GetBestTrace()) != "good" || p.GetTrials() != 4 || p.GetProposed() != 4 {
		t.Errorf("after the race: %v", p)
	}
	best := must[*tilthv1.BestRecordsResponse](t)(f.records.BestRecords(t.Context(), &tilthv1.BestRecordsRequest{Target: "cpu-1"})).GetRecords()
	if len(best) != 1 || best[0].GetMeasurement().GetLatencySeconds() != 1.1 || best[0].GetMeasurement().GetCandidate().GetTrial() != 3 {
		t.Errorf("the store's best: %v", best)
	}
}

func TestFinalistThatCrashesIsNotTheBest(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	job := f.submit("r1", spec("conv"))
	tuner := f.mustLease(f.tuner())
	f.propose(tuner.GetLease(), 0, 0, "flaky", "good")
	f.reportBuild(f.buildReport(f.mustLease(f.builder())))
	first := f.mustLease(f.runner())
	cs := first.GetMeasure().GetCandidates()
	f.report(first.GetLease(), sampled(cs[0], 0.8, 10), sampled(cs[1], 1, 10))
	race := f.race(tuner.GetLease(), 1, "flaky", "good")
	f.report(race.GetLease(), crashed(race.GetMeasure().GetCandidates()[0]), sampled(race.GetMeasure().GetCandidates()[1], 1.1, 20))
	if p := f.job(job.GetId()).GetProgress()[0]; string(p.GetBestTrace()) != "good" || p.GetBestSeconds() != 1.1 {
		t.Errorf("after the race: %v", p)
	}
	best := must[*tilthv1.BestRecordsResponse](t)(f.records.BestRecords(t.Context(), &tilthv1.BestRecordsRequest{Target: "cpu-1"})).GetRecords()
	if len(best) != 1 || best[0].GetMeasurement().GetLatencySeconds() != 1.1 {
		t.Errorf("the store's best: %v", best)
	}
}

func TestTooManyFinalistsAreRefused(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	f.submit("r1", spec("conv"))
	lease := f.mustLease(f.tuner()).GetLease()
	var names []string
	for k := range 9 {
		names = append(names, fmt.Sprint("c", k))
	}
	_, err := f.search.ProposeBatch(t.Context(), &tilthv1.ProposeBatchRequest{Lease: lease, Candidates: candidates(names...), Mode: finalists})
	wantStatus(t, err, codes.InvalidArgument, "", "at most 8")
	_, err = f.search.ProposeBatch(t.Context(), &tilthv1.ProposeBatchRequest{Lease: lease, Candidates: candidates("c"), Mode: 99})
	wantStatus(t, err, codes.InvalidArgument, "", "mode")
}
