package bestschedule

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/userkernel"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/transfer"
)

// TestForbiddenKernelCostsNoMeasuredSchedule checks that the fastest confirmed schedule is used if the best record
// has a kernel that is not permitted.
func TestForbiddenKernelCostsNoMeasuredSchedule(t *testing.T) {
	_, machine := imported(t)
	w := kerneltest.Product(t, 16, 64, 128)
	k, err := userkernel.Parse(fmt.Appendf(nil, `{"name":"mine","arch":"x86-64","numerics":"strict","workloads":[{"text":["%s"]}],"source":"x"}`,
		strings.ReplaceAll(strings.TrimSuffix(w.Text(), "\n"), "\n", `","`)))
	if err != nil {
		t.Fatal(err)
	}
	written, err := k.At(w, nil)
	if err != nil {
		t.Fatal(err)
	}
	best := schedule.New(w)
	if err := best.UseOwn(written); err != nil {
		t.Fatal(err)
	}
	s := spaceOf(t, w, machine, schedule.Strict)
	task := &transfer.Task{Workload: w, Target: machine}
	var digests []string
	for i, point := range s.Seeds()[1:4] {
		made, err := s.Apply(point)
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, schedule.Digest(made.Trace()))
		task.Trials = append(task.Trials, transfer.Trial{Origin: s.Format(point), Digest: digests[i], LatencySeconds: float64(i + 1)})
	}
	sources := Sources{
		Lookup: func(context.Context, string, schedule.Numerics, ...string) ([]*tilthv1.Record, error) {
			return []*tilthv1.Record{record(w.Digest(), best.Trace())}, nil
		},
		Learn: func(_ context.Context, asked *target.Target) (*transfer.History, error) {
			return transfer.NewHistory(asked, []*transfer.Task{task}), nil
		},
	}
	p := &program.Program{Tasks: []program.Task{{Name: "product", Workload: w}}}
	choose := func() (digest string, seconds float64) {
		t.Helper()
		choices, err := Choose(t.Context(), p, machine, schedule.Strict, sources, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if choices[0].Origin != FromRecord {
			return choices[0].Origin, 0
		}
		return schedule.Digest(choices[0].Trace), choices[0].LatencySeconds
	}
	if digest, seconds := choose(); digest != digests[0] || seconds != 1 {
		t.Errorf("without confirmation: %s, %v s", digest, seconds)
	}
	refuse := 1
	asked := 0
	sources.Confirm = func(_ context.Context, r *tilthv1.Record, s, _ *schedule.Schedule) (float64, string, error) {
		if s.Own != nil || r.GetJobId() != "" {
			t.Error("asked about the kernel, or told that the record was made here")
		}
		if asked++; asked <= refuse {
			return 0, "slower here", nil
		}
		return 0.25, "", nil
	}
	if digest, seconds := choose(); digest != digests[1] || seconds != 0.25 {
		t.Errorf("the first schedule is refused: %s, %v s", digest, seconds)
	}
	refuse, asked = maxConfirmed, 0
	if digest, _ := choose(); digest == digests[0] || digest == digests[1] || digest == digests[2] || asked != maxConfirmed {
		t.Errorf("all are refused: %s, after %d questions", digest, asked)
	}
}
