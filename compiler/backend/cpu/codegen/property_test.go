package codegen

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"pgregory.net/rapid"
)

// batchSize is how many schedules go into one translation unit; starting a compiler costs as much as compiling
// several.
const batchSize = 40

func drawCase(t *rapid.T) testCase {
	w := drawWorkload(t)
	return testCase{
		workload: w, schedule: drawSchedule(t, w), workers: rapid.IntRange(1, 3).Draw(t, "workers"),
		args: fillArgs(w, rapid.Uint64Range(0, 99).Draw(t, "seed")),
	}
}

// TestSchedulesKeepTheMeaning is the property the compiler stands on: whatever primitives are applied to whatever
// workload, either lowering says why it refuses, or the kernel computes what the evaluator does.
func TestSchedulesKeepTheMeaning(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				checkCases(t, rt, m, rapid.SliceOfN(rapid.Custom(drawCase), 1, batchSize).Draw(rt, "cases"))
			})
		})
	}
}

type failer interface {
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

func checkCases(t testing.TB, f failer, m mode, cases []testCase) {
	outputs, refused, at, err := m.execute(t, cases)
	if err != nil {
		if at < 0 {
			f.Fatalf("compiling: %v", err)
		}
		f.Fatalf("%v\n%s", err, cases[at].text())
	}
	for k, c := range cases {
		if refused[k] != nil {
			continue
		}
		if text := c.wrong(outputs[k]); text != "" {
			f.Fatalf("%s\n%s", text, c.text())
		}
	}
	f.Logf("%d of %d schedules ran", len(cases)-len(refused), len(cases))
}

// wrong says what differs from the evaluator's answer; empty when nothing does.
func (c testCase) wrong(got []*array.Array) string {
	want, err := expr.Evaluate(c.workload, c.args)
	if err != nil {
		return fmt.Sprintf("the evaluator fails: %v", err)
	}
	for k, o := range want {
		if text := difference(got[k], o, Tolerance(c.workload)*c.schedule.ErrorGrowth()); text != "" {
			return fmt.Sprintf("output %d: %s", k, text)
		}
	}
	return ""
}

// seedVariable is what the environment may set to draw other cases than the usual ones.
const seedVariable = "TILTH_TEST_SEED"

// TestMain draws fewer cases than rapid's default of 100, since each is a batch, and the same ones in every run, so
// that they are compiled once. -rapid.checks asks for more; -rapid.seed, or TILTH_TEST_SEED in the environment, for
// others.
func TestMain(m *testing.M) {
	seed := os.Getenv(seedVariable)
	if seed == "" {
		seed = "1"
	}
	for name, value := range map[string]string{"rapid.checks": "4", "rapid.seed": seed} {
		f := flag.Lookup(name)
		f.DefValue = value
		if err := f.Value.Set(value); err != nil {
			panic(fmt.Sprintf("%s: %v", name, err))
		}
	}
	os.Exit(m.Run())
}

// TestReplayedSchedulesPrintTheSameText: a candidate travels as its trace, and its text must not depend on who prints
// it.
func TestReplayedSchedulesPrintTheSameText(t *testing.T) {
	d := modes[0].description(t)
	rapid.Check(t, func(t *rapid.T) {
		c := drawCase(t)
		replayed, err := schedule.Replay(c.workload, c.schedule.Trace())
		if err != nil {
			t.Fatalf("%v\n%s", err, c.text())
		}
		first, errFirst := Module(c.workload, []backend.Kernel{{ID: "k", Schedule: c.schedule}}, d)
		second, errSecond := Module(c.workload, []backend.Kernel{{ID: "k", Schedule: replayed}}, d)
		if first != second || fmt.Sprint(errFirst) != fmt.Sprint(errSecond) {
			t.Fatalf("the text differs: %v, %v\n%s", errFirst, errSecond, c.text())
		}
	})
}
