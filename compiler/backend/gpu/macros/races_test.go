package macros

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// step is a statement of a kernel: a barrier, or an access by one thread of one block.
type step struct {
	barrier       string
	block, thread int
	array         string
	element       int
	write, atomic bool
}

func (s step) text() string {
	if s.barrier != "" {
		return s.barrier + "();"
	}
	access := fmt.Sprintf("(void)LOAD(%s, %d);", s.array, s.element)
	switch {
	case s.atomic:
		access = fmt.Sprintf("ATOMIC_ADD(%s, %d, 1);", s.array, s.element)
	case s.write:
		access = fmt.Sprintf("STORE(%s, %d, 1);", s.array, s.element)
	}
	return fmt.Sprintf("if (BID == %d && TID == %d) %s", s.block, s.thread, access)
}

// drawSteps returns few accesses to few elements with few writes. The difficult case is which accesses an element's
// last readers hide.
func drawSteps(r *rand.Rand) (steps []step) {
	array, blocks, elements, writes := []string{"s", "y"}[r.IntN(2)], 1+r.IntN(2), 1+r.IntN(2), 2+r.IntN(6)
	for range 3 + r.IntN(7) {
		s := step{block: r.IntN(blocks), thread: []int{0, 1, 2, 31, 32, 33}[r.IntN(6)], array: array, element: r.IntN(elements), write: r.IntN(writes) == 0}
		s.atomic = s.write && array == "y" && r.IntN(2) == 0
		switch r.IntN(8) {
		case 0:
			s = step{barrier: "BARRIER"}
		case 1, 2:
			s = step{barrier: "WARP_BARRIER"}
		}
		steps = append(steps, s)
	}
	return steps
}

// races reports whether two accesses race, given the barriers between them in program order.
func races(a, b step, between []step) bool {
	if a.array != b.array || a.element != b.element || !a.write && !b.write || a.atomic && b.atomic {
		return false
	}
	if a.block != b.block {
		return a.array == "y"
	}
	if a.thread == b.thread {
		return false
	}
	for _, s := range between {
		if s.barrier == "BARRIER" || s.barrier == "WARP_BARRIER" && a.thread/32 == b.thread/32 {
			return false
		}
	}
	return true
}

func anyRace(steps []step) bool {
	for k, b := range steps {
		for j, a := range steps[:k] {
			if a.barrier == "" && b.barrier == "" && races(a, b, steps[j:k]) {
				return true
			}
		}
	}
	return false
}

var reportedRace = regexp.MustCompile(`gpu-sim: kernel k(\d+), block \d+: race on `)

// TestRacesAreReportedIfAndOnlyIfThereAreAny draws kernels and checks each pair of their accesses.
func TestRacesAreReportedIfAndOnlyIfThereAreAny(t *testing.T) {
	kernels := 1500
	if testing.Short() {
		kernels = 200
	}
	r := rand.New(rand.NewPCG(1, 2))
	var text, thunks, launches strings.Builder
	drawn := make([][]step, kernels)
	for k := range drawn {
		fmt.Fprintf(&text, "TILTH_KERNEL(k%d, 64)(GLOBAL float *restrict y) {\n  GLOBAL_ARRAY(y, 8);\n  SHARED_ARRAY(float, s, 3);\n"+
			"  if (TID < 3) STORE(s, TID, 0);\n  BARRIER();\n", k)
		drawn[k] = drawSteps(r)
		for _, s := range drawn[k] {
			fmt.Fprintf(&text, "  %s\n", s.text())
		}
		text.WriteString("}\n")
		fmt.Fprintf(&thunks, "THUNK(k%d, a[0])\n", k)
		fmt.Fprintf(&launches, "  if (!fork()) {\n    LAUNCH(k%d, 64, 2, 1, (OUT(y, 8)), y);\n    _exit(0);\n  }\n  wait(0);\n", k)
	}
	host := "#include <sys/wait.h>\n" + thunks.String() + "int main(void) {\n  float *y = room(8 * sizeof *y);\n" + launches.String() + "  return 0;\n}\n"
	out, err := build{compiler: "clang-19", flags: []string{"-O0"}}.run(t, text.String(), host, 1)
	if err != nil {
		t.Fatalf("%v: %.2000s", err, out)
	}
	reported := map[int]string{}
	for line := range strings.Lines(out) {
		m := reportedRace.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("unexpected report: %s", line)
		}
		k, _ := strconv.Atoi(m[1])
		reported[k] = line
	}
	for k, steps := range drawn {
		if line := reported[k]; anyRace(steps) != (line != "") {
			var lines []string
			for _, s := range steps {
				lines = append(lines, s.text())
			}
			t.Errorf("a race: %v, reported: %q\n%s", anyRace(steps), line, strings.Join(lines, "\n"))
		}
	}
	if n := len(reported); n < kernels/4 || n > kernels*3/4 {
		t.Errorf("%d of %d kernels have races", n, kernels)
	}
}
