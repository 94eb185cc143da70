package macros

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
)

// mathErrors holds the largest errors of the functions for doubles and floats, in units in the last place.
var mathErrors = map[string][2]float64{
	"exp": {1, 1.2}, "log": {0.7, 0.9}, "tanh": {3, 3.5}, "erf": {14, 3}, "sin": {3, 0.6}, "cos": {3, 0.6}, "tan": {4, 0.6}, "asin": {3.5, 0.6},
	"acos": {3.5, 0.6}, "atan": {3, 0.6}, "sinh": {3, 0.6}, "cosh": {2, 0.6}, "asinh": {3, 0.6}, "acosh": {3, 0.6}, "atanh": {3, 0.6},
	"sqrt": {0.5, 0.5}, "floor": {0, 0}, "ceil": {0, 0}, "rint": {0, 0}, "fabs": {0, 0}, "pow": {12, 0.6}, "fmod": {0, 0},
}

// TestMathIsAccurate compares the functions with the C library's in long double, which has more digits than double on
// x86-64.
func TestMathIsAccurate(t *testing.T) {
	text := "#include <stdint.h>\nenum { STEP = 24593, DRAWS = 100000 };\n"
	if testing.Short() {
		text = "#include <stdint.h>\nenum { STEP = 24593 * 16, DRAWS = 5000 };\n"
	}
	for _, b := range []build{clang, {name: "gcc", compiler: "gcc", flags: []string{"-O2"}}} {
		for _, arch := range []string{"x86-64", "x86-64-v3"} { // without fused multiply-adds, and with them
			if testing.Short() && (b.name != clang.name || arch != "x86-64-v3") {
				continue
			}
			t.Run(b.name+"/"+arch, func(t *testing.T) {
				t.Parallel()
				flags := append([]string{"-std=gnu11", "-ffp-contract=off", "-fno-math-errno", "-w", "-march=" + arch}, b.flags...)
				program, err := toolchaintest.Program(t, b.compiler, flags, text+math+read(t, "math.c"))
				if err != nil {
					t.Fatal(err)
				}
				out, err := exec.CommandContext(t.Context(), program).Output()
				if err != nil {
					t.Fatal(err)
				}
				checkErrors(t, string(out))
			})
		}
	}
}

// checkErrors parses the program's output: two lines per function.
func checkErrors(t *testing.T, out string) {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 2*len(mathErrors) {
		t.Fatalf("%d lines are not two for each function:\n%s", len(lines), out)
	}
	for k, line := range lines {
		var name, at string
		var worst float64
		if _, err := fmt.Sscan(line, &name, &worst, &at); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		limit, ok := mathErrors[name]
		if k%2 == 1 {
			limit, ok = mathErrors[strings.TrimSuffix(name, "f")]
		}
		if !ok || worst > limit[k%2] {
			t.Errorf("%s is %.2f units in the last place from exact at %s; at most %.1f are promised", name, worst, at, limit[k%2])
		}
	}
}
