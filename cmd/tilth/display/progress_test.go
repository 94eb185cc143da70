package display

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/timestamppb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/progress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newTally() *progress.Tally {
	return progress.NewTally(&tilthv1.Job{
		CreatedAt: timestamppb.New(began),
		Spec:      &tilthv1.JobSpec{Tasks: []*tilthv1.TaskSpec{{Name: "conv", Weight: 2, Flop: 1e6}}},
	}, []progress.Reference{{DefaultDigest: "default", PeakSeconds: 0.0002, ByteSeconds: 0.0005}})
}

func add(t *progress.Tally, after time.Duration, digest string, latency, best float64) {
	t.Add(&tilthv1.JobEvent{At: timestamppb.New(began.Add(after)), Event: &tilthv1.JobEvent_Trial{Trial: &tilthv1.TrialRecorded{
		BestSeconds: best,
		Measurement: &tilthv1.Measurement{
			Candidate: &tilthv1.Candidate{Digest: digest}, LatencySeconds: latency, Error: tilthv1.ErrorClass_ERROR_CLASS_NONE,
		},
	}}})
}

func TestSparseLinesKeepTheirDistance(t *testing.T) {
	var out strings.Builder
	d := NewSparse(&out, Budget{Trials: 10, Time: 2 * time.Minute}, 10*time.Second)
	tally := newTally()
	d.Update(tally) // nothing to display yet
	for i, after := range []time.Duration{1, 2, 9, 11, 12} {
		latency := 0.002 / float64(i+1)
		digest := "other"
		if i == 0 {
			digest = "default"
		}
		add(tally, after*time.Second, digest, latency, latency)
		d.Update(tally)
	}
	d.Close()
	want := "trials 1/10  0:01/2:00  left 0:09  model 4.00 ms (untuned 4.00 ms, 1.00x; limit 1.00 ms)\n" +
		"trials 4/10  0:11/2:00  left 0:17  model 1.00 ms (untuned 4.00 ms, 4.00x; limit 1.00 ms)\n" +
		"trials 5/10  0:12/2:00  left 0:12  model 800 µs (untuned 4.00 ms, 5.00x; limit 400 µs)\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestQuietShowsMessagesOnly(t *testing.T) {
	var out strings.Builder
	d := Display(Quiet{&out})
	tally := newTally()
	add(tally, time.Second, "default", 0.002, 0.002)
	d.Update(tally)
	if _, err := d.Write([]byte("tracker lost\n")); err != nil {
		t.Fatal(err)
	}
	d.Close()
	if out.String() != "tracker lost\n" {
		t.Errorf("got %q", out.String())
	}
}

func TestBudgetSpent(t *testing.T) {
	for _, c := range []struct {
		name    string
		budget  Budget
		trials  int
		elapsed time.Duration
		want    float64
	}{
		{"no limit", Budget{}, 100, time.Hour, 0},
		{"trials", Budget{Trials: 200}, 100, time.Hour, 0.5},
		{"the limit that is nearer", Budget{Trials: 200, Time: time.Minute}, 100, 45 * time.Second, 0.75},
		{"not more than all", Budget{Time: time.Minute}, 0, time.Hour, 1},
	} {
		if got := c.budget.spent(c.trials, c.elapsed); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestTimeLeft(t *testing.T) {
	for _, c := range []struct {
		name    string
		budget  Budget
		trials  int
		elapsed time.Duration
		want    time.Duration
		ok      bool
	}{
		{"no limit", Budget{}, 100, time.Hour, 0, false},
		{"time", Budget{Time: time.Minute}, 0, 45 * time.Second, 15 * time.Second, true},
		{"time that is over", Budget{Time: time.Minute}, 0, time.Hour, 0, true},
		{"trials, none yet", Budget{Trials: 100}, 0, time.Minute, 0, false},
		{"trials at the rate so far", Budget{Trials: 100}, 25, time.Minute, 3 * time.Minute, true},
		{"the nearer of both", Budget{Trials: 100, Time: time.Hour}, 25, time.Minute, 3 * time.Minute, true},
		{"more trials than asked for", Budget{Trials: 100}, 101, time.Minute, 0, true},
	} {
		if got, ok := c.budget.left(c.trials, c.elapsed); got != c.want || ok != c.ok {
			t.Errorf("%s: %v, %v, want %v", c.name, got, ok, c.want)
		}
	}
}
