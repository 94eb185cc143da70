package tracker_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/internal/humanize"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker"
)

// predicted measures a job's trials, some of them with predictions, and returns the job's ID. Half of the trials are
// measured after a restart.
func (f *trackerFarm) predicted() string {
	f.Helper()
	s := spec("conv")
	s.Budget = &tilthv1.Budget{Trials: 20}
	id := f.submit("predicted", s).GetId()
	lease := f.mustLease(f.tuner()).GetLease()
	f.propose(lease, 0, 0, "default") // without predictions, like older tuners
	var names []string
	var told []float32
	for i := range 8 {
		names, told = append(names, fmt.Sprint("candidate ", i)), append(told, float32(i)*1e-3)
	}
	proposed := candidates(names...)
	proposed[5].Numerics, proposed[5].Multiplications = "default", 0.25
	must[*tilthv1.ProposeBatchResponse](f)(f.search.ProposeBatch(f.Context(), &tilthv1.ProposeBatchRequest{
		Lease: lease, Proposal: 1, Candidates: proposed, PredictedSeconds: told,
	}))
	builder, runner := f.builder(), f.runner()
	for range 2 {
		f.reportBuild(f.buildReport(f.mustLease(builder)))
	}
	first := f.mustLease(runner)
	f.report(first.GetLease(), ok(first.GetMeasure().GetCandidates()[0], 9e-3))
	work := f.mustLease(runner)
	cs := work.GetMeasure().GetCandidates()
	f.report(work.GetLease(), ok(cs[0], 8e-3), ok(cs[1], 1e-3), ok(cs[2], 2e-3), crashed(cs[3]))
	f.restart()
	f.report(work.GetLease(), ok(cs[4], 4e-3), ok(cs[5], 10e-3), ok(cs[6], 6e-3), ok(cs[7], 7e-3))
	return id
}

// TestTaskShowsWhatWasPredictedOfItsTrials covers trials without a prediction: the first batch, and one predicted as
// 0.
func TestTaskShowsWhatWasPredictedOfItsTrials(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	id := f.predicted()
	wantPage(t, f.tracker.HTTPHandler(), "/jobs/"+id+"/tasks/0", []string{
		"Predicted and measured", `<td class="name">all<td class="n">6<td class="n">0.83<td class="n">1.00x`,
		`<td class="name">direct<td class="n">5<td class="n">1.00<td class="n">1.00x`,
		`<td class="name">default, 25 % of multiplications<td class="n">1<td class="n">-<td class="n">2.00x`,
		`<td class="n">6<td>default, 25 % of multiplications<td class="n">10.0 ms<td class="n">5.00 ms<td class="n">4`,
		"on the line they are equal", "trial 4: failed: crash, predicted 3.00 ms", "trial 1: 8.00 ms; direct",
	}, nil)
	var told []string
	for _, e := range f.events(id, 1, 13) {
		if trial := e.GetTrial(); trial != nil {
			told = append(told, humanize.Seconds(float64(trial.GetPredictedSeconds())))
		}
	}
	want := []string{"-", "-", "1.00 ms", "2.00 ms", "3.00 ms", "4.00 ms", "5.00 ms", "6.00 ms", "7.00 ms"}
	if !slices.Equal(told, want) {
		t.Errorf("trials were predicted to take %s, want %s", told, want)
	}
}

// TestTaskWhoseTrialsWereNotPredictedSaysNothingOfIt covers searches without a model, and older tuners.
func TestTaskWhoseTrialsWereNotPredictedSaysNothingOfIt(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	id := f.measured().GetId()
	wantPage(t, f.tracker.HTTPHandler(), "/jobs/"+id+"/tasks/0", []string{`aria-label="Latency of trials"`}, []string{"redicted", `class="equal"`})
}
