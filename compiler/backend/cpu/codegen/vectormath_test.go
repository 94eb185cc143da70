package codegen

import (
	"context"
	_ "embed"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

//go:embed testdata/vectormath.c
var vectorMathDriver string

// vectorMathErrors lists the largest errors, in units in the last place, that the sweep finds on any target.
var vectorMathErrors = []struct {
	name string
	max  float64
}{{"exp", 1.2}, {"logistic", 4.6}, {"log", 0.9}, {"tanh", 3.5}, {"erf", 3.0}, {"sin", 1.6}, {"cos", 1.6}, {"pow", 0.6}}

// TestVectorMathIsAccurate compares the vector functions with the C library in double precision, for every 1021st
// float of the whole range and special values.
func TestVectorMathIsAccurate(t *testing.T) {
	for _, m := range quick(modes, "avx512", "gcc", "neon") {
		t.Run(m.name, func(t *testing.T) {
			stride := 1021
			if m.emulator != "" || m.name == "sanitized" {
				stride *= 16
			}
			if testing.Short() {
				stride = 1021 * 32
			}
			sweepVectorMath(t, m, vectorMathSource(m.description(t).CPU.VectorBytes, stride))
		})
	}
}

// vectorMathSource returns the program that sweeps every function.
func vectorMathSource(vectorBytes, stride int) string {
	u := newUnit(int64(vectorBytes))
	lanes := u.config.Lanes(array.Float32)
	var sweeps, calls strings.Builder
	for _, f := range vectorMathErrors {
		macro := "SWEEP"
		if f.name == "pow" {
			macro = "SWEEP2"
		}
		fmt.Fprintf(&sweeps, "%s(%s, %s, %s)\n", macro, f.name, u.helper(f.name, array.Float32, lanes), f.name)
		fmt.Fprintf(&calls, "  sweep_%s();\n", f.name)
	}
	return fmt.Sprintf("%s\nenum { LANES = %d, STRIDE = %d };\n#define VECTOR %s\n%s\n%s\nint main(void) {\n%s  return 0;\n}\n",
		u.Source(), lanes, stride, u.vector(array.Float32, lanes), vectorMathDriver, sweeps.String(), calls.String())
}

func sweepVectorMath(t *testing.T, m mode, source string) {
	m.flags = append(slices.Clone(m.flags), "-O2") // as in packages: gcc fuses multiply-adds from this level on
	program, err := m.compile(t, source)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), runLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program)
	if m.emulator != "" {
		cmd = exec.CommandContext(ctx, strings.Fields(m.emulator)[0], append(strings.Fields(m.emulator)[1:], program)...)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, kerneltest.Tail(string(out)))
	}
	for k, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		var name, x, y string
		var worst float64
		if _, err := fmt.Sscan(line, &name, &worst, &x, &y); err != nil || name != vectorMathErrors[k].name {
			t.Fatalf("unexpected line %q: %v", line, err)
		}
		t.Logf("%s: %.3f units at %s, %s", name, worst, x, y)
		if worst > vectorMathErrors[k].max {
			t.Errorf("%s is %.3f units in the last place from exact at %s, %s; at most %.1f are promised", name, worst, x, y, vectorMathErrors[k].max)
		}
	}
}
