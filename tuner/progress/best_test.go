package progress

import (
	"strings"
	"testing"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// TestLimitIsThatOfTheAlgorithmThatWasUsed is a regression test: "OF LIMIT 236 %" compared Winograd's algorithm
// with the limit of direct sums.
func TestLimitIsThatOfTheAlgorithmThatWasUsed(t *testing.T) {
	for _, c := range []struct {
		name      string
		candidate *tilthv1.Candidate
		want      string
	}{
		{"direct", &tilthv1.Candidate{Digest: "d", Numerics: "strict", Multiplications: 1}, "100 %"},
		{"direct, of an older version", &tilthv1.Candidate{Digest: "d"}, "100 %"},
		{"Winograd", &tilthv1.Candidate{Digest: "d", Numerics: "default", Multiplications: 0.25}, "25 %"},
		{"Winograd, of an older version", &tilthv1.Candidate{Digest: "d", Numerics: "default"}, "10 % bytes"},
	} {
		tally := NewTally(job(), []Reference{{PeakSeconds: 0.001, ByteSeconds: 0.0001}})
		e := trial(1, 0, 0, "d", 0.001, 0.001, none)
		e.GetTrial().GetMeasurement().Candidate = c.candidate
		tally.Add(e)
		if got := tally.Tasks[0].OfLimit(); got != c.want {
			t.Errorf("%s: %s of the limit, want %s", c.name, got, c.want)
		}
		// The job's own progress is consistent.
		progress := OfProgress(&tilthv1.Job{Spec: job().GetSpec(), Progress: []*tilthv1.TaskProgress{
			{Trials: 1, BestSeconds: 0.001, Best: e.GetTrial().GetMeasurement()},
		}}, []Reference{{PeakSeconds: 0.001, ByteSeconds: 0.0001}})
		if got := progress.Tasks[0].OfLimit(); got != c.want {
			t.Errorf("%s, by progress: %s of the limit, want %s", c.name, got, c.want)
		}
	}
}

func TestLimitThatIsBeatenIsNone(t *testing.T) {
	for peak, want := range map[float64]string{0.0009: "90 %", 0.00105: "100 %", 0.002: "-"} {
		task := Task{BestSeconds: 0.001, Best: &tilthv1.Measurement{LatencySeconds: 0.001}, reference: Reference{PeakSeconds: peak}}
		if got := task.OfLimit(); got != want {
			t.Errorf("%g of a limit of 1 ms is %s, want %s", peak, got, want)
		}
	}
}

// TestSlowerBestIsShownAsRemeasured is a regression test: a best that became slower when confirmed looked lost.
func TestSlowerBestIsShownAsRemeasured(t *testing.T) {
	tally := NewTally(job(), nil)
	steps := []struct {
		digest        string
		latency, best float64
		want          string
	}{
		{"a", 0.001, 0.001, "-"},
		{"a", 0.0015, 0.0015, "- remeasured, was 1.00 ms"},
		{"b", 0.002, 0.0015, "- remeasured, was 1.00 ms"},
		{"b", 0.0012, 0.0012, "-"},
		{"b", 0.0011, 0.0011, "-"},
	}
	for k, s := range steps {
		tally.Add(trial(k, 0, uint32(k), s.digest, s.latency, s.best, none))
		if got := tally.Tasks[0].Uncertainty(); got != s.want {
			t.Errorf("step %d: %q, want %q", k, got, s.want)
		}
	}
	var out strings.Builder
	tally.Add(trial(9, 0, 9, "b", 0.0013, 0.0013, none))
	if err := tally.WriteTable(&out); err != nil || !strings.Contains(out.String(), "remeasured, was 1.10 ms") {
		t.Errorf("%v\n%s", err, out.String())
	}
	if s := tally.Summary().Tasks[0]; s.RemeasuredFrom == nil || *s.RemeasuredFrom != 0.0011 {
		t.Errorf("the summary says %v", s.RemeasuredFrom)
	}
}
