package progress_test

import (
	"testing"

	"github.com/tilth-dev/tilth/internal/stats"
	"github.com/tilth-dev/tilth/tuner/progress"
)

func TestMeasuredModelStatesItsVerdict(t *testing.T) {
	for verdict, want := range map[string]string{
		stats.Faster:       "m 8.00 ms, untuned 9.00 ms in turns: 1.12x (1.10 to 1.15x)",
		stats.Slower:       "m 8.00 ms, untuned 9.00 ms in turns: 1.12x (1.10 to 1.15x), slower: compile it with --untuned",
		stats.Noise:        "m 8.00 ms, untuned 9.00 ms in turns: 1.12x (1.10 to 1.15x), noise",
		stats.TooFewRounds: "m 8.00 ms, untuned 9.00 ms in turns: 1.12x (1.10 to 1.15x), too few rounds",
	} {
		m := progress.MeasuredModel{
			Model: "m", UntunedSeconds: 9e-3, TunedSeconds: 8e-3, Paired: stats.Paired{Ratio: 1.12, Low: 1.1, High: 1.15}, Verdict: verdict,
		}
		if got := m.String(); got != want {
			t.Errorf("%s is stated as %q, want %q", verdict, got, want)
		}
	}
}
