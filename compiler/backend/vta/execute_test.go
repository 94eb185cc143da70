package vta

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend"
	cpucode "github.com/tilth-dev/tilth/compiler/backend/cpu/codegen"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
)

func TestMain(m *testing.M) { kerneltest.Main(m, 20) }

// fataler is a test, or a draw of one.
type fataler interface{ Fatal(args ...any) }

// host returns this machine with the accelerator.
func host(t fataler) *target.Target {
	on, err := Backend{}.Target(targetName, 1)
	if err != nil {
		t.Fatal(err)
	}
	return on
}

// caseOf returns the case of a point of a workload's space, or of its default for "".
func caseOf(t testing.TB, w *expr.Workload, point string) kerneltest.Case {
	t.Helper()
	s := Backend{}.Space(w, host(t), schedule.Default)
	p := s.Default()
	if point != "" {
		var ok bool
		if p, ok = s.Parse(point); !ok {
			t.Fatalf("%s is not legal", point)
		}
	}
	made, err := s.Apply(p)
	if err != nil {
		t.Fatal(err)
	}
	if !accelerated(made) {
		t.Fatalf("the workload does not run on the accelerator:\n%s", w.Text())
	}
	return kerneltest.Case{Workload: w, Schedule: made, Workers: 1, Args: kerneltest.Fill(w, 1)}
}

// kernels is a compiled program of cases.
type kernels struct {
	cases   []kerneltest.Case
	program string
	// log is the file to which each kernel appends its cycles.
	log string
}

// compiled compiles cases after change has edited the text of each kernel.
func compiled(t testing.TB, cases []kerneltest.Case, change func(k int, text string) string) kernels {
	t.Helper()
	var k int
	u := cpucode.NewUnitOf(include, func(u *cpucode.Unit, symbol string, s *schedule.Schedule) (backend.Info, error) {
		text, info, err := printed(symbol, s, u.Declarations())
		u.Write(strings.Replace(change(k, text), "vta_close(vta);", "vta_close(vta); log_cycles();", 1))
		return info, err
	})
	var symbols []string
	for k = range cases {
		symbols = append(symbols, fmt.Sprintf("k%d", k))
		if _, err := u.AddWithPacks(symbols[k], symbols[k], cases[k].Schedule); err != nil {
			t.Fatalf("%v\n%s", err, cases[k].Text())
		}
	}
	text := kerneltest.Source(single(logging+u.Source()), symbols)
	flags := append(host(t).CPU.ClangFlags(), "-O2", "-std=gnu11", "-ffp-contract=off", "-fno-math-errno", "-fwrapv", "-w")
	program, err := toolchaintest.Program(t, "clang-19", flags, text)
	if err != nil {
		t.Fatal(err)
	}
	return kernels{cases, program, filepath.Join(t.TempDir(), "cycles")}
}

// logging is C that appends the cycles of all kernels so far to a file.
const logging = `#include <stdio.h>
#include <stdlib.h>
double vta_seconds(void);
static void log_cycles(void) {
  FILE *f = fopen(getenv("CYCLES"), "a");
  fprintf(f, "%f\n", vta_seconds());
  fclose(f);
}
`

// single returns a translation unit with the simulator's sources, and headers in place of the lines that include them.
func single(unit string) string {
	sources, headers := simulator()
	for _, s := range sources {
		unit += s.Text
	}
	included := regexp.MustCompile(`#include "([a-z_]+\.h)"\n`)
	seen := map[string]bool{}
	var flat func(text string) string
	flat = func(text string) string {
		return included.ReplaceAllStringFunc(text, func(line string) string {
			name := included.FindStringSubmatch(line)[1]
			for _, h := range headers {
				if h.Name == name && !seen[name] {
					seen[name] = true
					return flat(h.Text)
				}
			}
			return ""
		})
	}
	return flat(unit)
}

// run executes the cases that are not refused.
func (p kernels) run(refused map[int]error) ([][]*array.Array, error) {
	outputs, at, err := kerneltest.Run([]string{"env", "CYCLES=" + p.log, p.program}, p.cases, refused)
	if err != nil && at >= 0 && at < len(p.cases) {
		err = fmt.Errorf("case %d: %w\n%s", at, err, p.cases[at].Text())
	}
	return outputs, err
}

// check verifies all cases against the evaluator, and returns the cycles of each.
func check(t *testing.T, cases []kerneltest.Case) []float64 {
	t.Helper()
	p := compiled(t, cases, func(_ int, text string) string { return text })
	outputs, err := p.run(nil)
	if err != nil {
		t.Fatal(err)
	}
	for k, c := range cases {
		if wrong := c.Wrong(outputs[k]); wrong != "" {
			t.Errorf("%s\n%s", wrong, c.Text())
		}
	}
	text, err := os.ReadFile(p.log)
	if err != nil {
		t.Fatal(err)
	}
	var cycles []float64
	before := 0.0
	for _, line := range strings.Fields(string(text)) {
		var seconds float64
		if _, err := fmt.Sscan(line, &seconds); err != nil {
			t.Fatal(err)
		}
		cycles, before = append(cycles, (seconds-before)*clock), seconds
	}
	return cycles
}

// product returns a product of bytes with constant weights.
func productOf(t testing.TB, m, k, n int64) *expr.Workload {
	a, b := expr.NewInput("a", array.Uint8, m, k), expr.NewConstant("b", array.Int8, k, n)
	sum := expr.ReduceOver("sum", expr.Sum, []int64{m, n}, []int64{k}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(expr.To(array.Int32, a.At(i[0], r[0])), expr.To(array.Int32, b.At(r[0], i[1])))
	})
	w, err := expr.NewWorkload([]*expr.Tensor{sum})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestProductsAreExact(t *testing.T) {
	var cases []kerneltest.Case
	for _, size := range [][3]int64{{1, 16, 16}, {16, 16, 16}, {28, 64, 48}, {7, 24, 40}, {12, 5, 3}} {
		w := productOf(t, size[0], size[1], size[2])
		for _, point := range []string{"", "tw=1 tk=1 tc=1 slots=1", "tw=4 tk=2 tc=2 slots=2", "tw=4 tk=2 tc=2 slots=3 order=1", "tw=2 tk=1 slots=2 resident=1"} {
			cases = append(cases, caseOf(t, w, point))
		}
	}
	check(t, cases)
}
