package progress

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/internal/stats"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// TestTableHasLatenciesWithinTheModel checks the column, and the speed-ups there, of two tasks that both models have.
func TestTableHasLatenciesWithinTheModel(t *testing.T) {
	tally := NewTally(&tilthv1.Job{Spec: &tilthv1.JobSpec{Tasks: []*tilthv1.TaskSpec{
		{Name: "conv", WorkloadDigest: "c", Weight: 2}, {Name: "dense", WorkloadDigest: "d", Weight: 1},
	}}}, nil)
	table := func() string {
		var b strings.Builder
		if err := tally.WriteTable(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if got := table(); strings.Contains(got, "IN MODEL") {
		t.Errorf("without a comparison:\n%s", got)
	}
	conv := MeasuredTask{Workload: "c", UntunedSeconds: 4e-3, TunedSeconds: 2e-3, Paired: stats.Paired{Ratio: 2}}
	tally.AddModels([]MeasuredModel{
		{Tasks: []MeasuredTask{conv, {Workload: "d"}}}, // which did not execute the second task
		{Tasks: []MeasuredTask{{Workload: "c", UntunedSeconds: 1, TunedSeconds: 1}, {Workload: "d", UntunedSeconds: 3e-3, TunedSeconds: 5e-3, KeepsDefault: true}}},
	})
	lines := strings.Split(table(), "\n")
	for k, want := range []string{"IN MODEL", "2.00 ms", "3.00 ms", "7.00 ms"} {
		if !strings.HasSuffix(lines[k], want) {
			t.Errorf("line %d is %q, want %s at its end", k, lines[k], want)
		}
	}
	for k, want := range []string{"2.00x", "default", "1.57x"} {
		if !strings.Contains(lines[k+1], want) {
			t.Errorf("line %d is %q, want a speed-up of %s", k+1, lines[k+1], want)
		}
	}
}
