package codegen

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"pgregory.net/rapid"
)

// batchSize is the number of schedules per translation unit. Starting a compiler costs as much as compiling several.
const batchSize = 40

func drawCase(t *rapid.T) kerneltest.Case { return drawCaseOf(t, kerneltest.DrawWorkload(t)) }

// drawCaseOf draws a schedule of a workload.
func drawCaseOf(t *rapid.T, w *expr.Workload) kerneltest.Case {
	return kerneltest.Case{
		Workload: w, Schedule: drawSchedule(t, w), Workers: rapid.IntRange(1, 3).Draw(t, "workers"),
		Args: kerneltest.Fill(w, rapid.Uint64Range(0, 99).Draw(t, "seed")),
	}
}

// TestSchedulesKeepTheMeaning checks the compiler's central property: for any primitives applied to any workload,
// lowering returns an error or the kernel agrees with the evaluator.
func TestSchedulesKeepTheMeaning(t *testing.T) {
	for _, m := range quick(slices.Concat(modes, []mode{sve}), "avx512", "sanitized", "sve") {
		t.Run(m.name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				checkCases(t, rt, m, kerneltest.Batch(rt, rapid.Custom(drawCase), batchSize))
			})
		})
	}
}

type failer interface {
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

func checkCases(t testing.TB, f failer, m mode, cases []kerneltest.Case) {
	outputs, refused, at, err := m.execute(t, cases)
	if err != nil {
		if at < 0 {
			f.Fatalf("compiling: %v", err)
		}
		f.Fatalf("%v\n%s", err, cases[at].Text())
	}
	for k, c := range cases {
		if refused[k] != nil {
			continue
		}
		if text := c.Wrong(outputs[k]); text != "" {
			f.Fatalf("%s\n%s", text, c.Text())
		}
	}
	f.Logf("%d of %d schedules ran", len(cases)-len(refused), len(cases))
}

func TestMain(m *testing.M) { kerneltest.Main(m, 4) }

// TestReplayedSchedulesPrintTheSameText checks that the text of a candidate depends only on its trace, by which
// candidates are transferred.
func TestReplayedSchedulesPrintTheSameText(t *testing.T) {
	d := modes[0].description(t)
	rapid.Check(t, func(t *rapid.T) {
		c := drawCase(t)
		replayed, err := schedule.Replay(c.Workload, c.Schedule.Trace())
		if err != nil {
			t.Fatalf("%v\n%s", err, c.Text())
		}
		first, errFirst := Module(c.Workload, []backend.Kernel{{ID: "k", Schedule: c.Schedule}}, d)
		second, errSecond := Module(c.Workload, []backend.Kernel{{ID: "k", Schedule: replayed}}, d)
		if first != second || fmt.Sprint(errFirst) != fmt.Sprint(errSecond) {
			t.Fatalf("the text differs: %v, %v\n%s", errFirst, errSecond, c.Text())
		}
	})
}
