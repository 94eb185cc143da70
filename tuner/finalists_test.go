package tuner

import (
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// sampled returns a verified measurement of a number of samples, spread by one per cent.
func sampled(c *tilthv1.Candidate, seconds float64, samples int) *tilthv1.Measurement {
	return &tilthv1.Measurement{
		Candidate: c, Error: tilthv1.ErrorClass_ERROR_CLASS_NONE, SamplesSeconds: slices.Repeat([]float64{seconds}, samples),
		LatencySeconds: seconds, Interval: &tilthv1.Interval{LowSeconds: 0.99 * seconds, HighSeconds: 1.01 * seconds, Level: 0.9},
	}
}

// twice measures all candidates consistently, except that the first one's first measurement is too good. raced counts
// remeasurements.
type twice struct {
	mu    sync.Mutex
	first string
	seen  map[string]bool
	raced int
}

func (w *twice) verdict(c *tilthv1.Candidate) *tilthv1.Measurement {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.first == "" {
		w.first = c.GetDigest()
	}
	again := w.seen[c.GetDigest()]
	w.seen[c.GetDigest()] = true
	switch {
	case again:
		w.raced++
		if c.GetDigest() == w.first {
			return sampled(c, 1.5e-3, 20)
		}
		return sampled(c, 1e-3, 20)
	case c.GetDigest() == w.first:
		return sampled(c, 0.99e-3, 10)
	}
	return sampled(c, 1e-3, 10)
}

func TestFinalistsAreMeasuredAgainWithinTheBudget(t *testing.T) {
	f := newFarm(t)
	w := &twice{seen: map[string]bool{}}
	f.start("builder", builderKind, agent.HandlerFunc(f.build))
	f.start("runner", runnerKind, f.measure(w.verdict))
	f.start("tuner", tunerKind, f.tuner())
	job := f.wait(f.submit(&tilthv1.Budget{Trials: 80}, kerneltest.Product(t, 64, 64, 64)), nil)
	p := job.GetProgress()[0]
	if job.GetReason() != "trials spent" || p.GetTrials() != 80 {
		t.Errorf("%d trials, %q", p.GetTrials(), job.GetReason())
	}
	if w.raced != 4 {
		t.Errorf("%d candidates were measured again, want 4", w.raced)
	}
	if p.GetBestSeconds() != 1e-3 || p.GetBest().GetCandidate().GetDigest() == w.first {
		t.Errorf("the best is %v: the first was only lucky", p.GetBest())
	}
}

// TestFinalistsHaveTheirTimeBehindTheTrialsInFlight is a regression test: a job of one minute still had trials of ten
// seconds in flight, and ended before its finalists were done.
func TestFinalistsHaveTheirTimeBehindTheTrialsInFlight(t *testing.T) {
	began := time.Unix(1000, 0)
	j := &job{
		budget:   &tilthv1.Budget{Time: durationpb.New(100 * time.Second)},
		time:     budgetTime{limit: 100 * time.Second, left: 100 * time.Second, start: began, reportedAt: began, runs: true},
		inFlight: map[string]int{"a": 16, "b": 16},
	}
	busy := &task{weight: 1, recorded: 320, best: 1}
	j.tasks = []*task{busy}
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	if got := j.backlog(at(80)); got != 8*time.Second {
		t.Errorf("32 trials at a quarter of a second take %v", got)
	}
	if j.closing(at(80)) || !j.closing(at(90)) {
		t.Error("the time for finalists begins when the trials in flight leave them a twentieth of the job's")
	}
}

func TestFinalistsAreThoseThatMeasurementsDoNotTellApart(t *testing.T) {
	candidate := func(name string) *tilthv1.Candidate { return &tilthv1.Candidate{Digest: name} }
	var r rivals
	for _, m := range []*tilthv1.Measurement{
		sampled(candidate("slow"), 1.1, 10), sampled(candidate("best"), 1, 10), sampled(candidate("close"), 1.01, 10),
		{Candidate: candidate("once"), LatencySeconds: 1, Interval: &tilthv1.Interval{LowSeconds: 1, HighSeconds: 1}},
		{Candidate: candidate("noisy"), LatencySeconds: 1.05, Interval: &tilthv1.Interval{LowSeconds: 0.9, HighSeconds: 1.2, Level: 0.9}},
		{Candidate: candidate("failed"), Error: tilthv1.ErrorClass_ERROR_CLASS_CRASH},
	} {
		r.add(m)
	}
	var got []string
	for _, c := range r.finalists() {
		got = append(got, c.GetDigest())
	}
	if want := []string{"best", "close", "noisy"}; !slices.Equal(got, want) {
		t.Errorf("finalists are %v, want %v", got, want)
	}
	r.standardDigest = "slow"
	r.add(sampled(candidate("slow"), 1.1, 10))
	if list := r.finalists(); len(list) != 4 || list[3].GetDigest() != "slow" {
		t.Errorf("the default schedule is not among the finalists: %v", list)
	}
	r.raced = true
	if r.finalists() != nil {
		t.Error("a task is raced twice")
	}
}
