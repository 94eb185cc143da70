package vta

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

var tokenLine = regexp.MustCompile(`(?m)^ *vta_(acquire|publish|await|release)\(.*\n`)

// TestEachMissingTokenIsReported removes each instruction that passes a token from a kernel. The simulator must report
// a race, units that wait for ever, or tokens that remain.
func TestEachMissingTokenIsReported(t *testing.T) {
	one := caseOf(t, productOf(t, 12, 64, 96), "tw=2 tk=1 tc=1 slots=2")
	p, err := lowered(one.Schedule)
	if err != nil {
		t.Fatal(err)
	}
	lines := tokenLine.FindAllString(p.text("kernel", nil), -1)
	programs := compiled(t, slices.Repeat([]kerneltest.Case{one}, len(lines)), func(k int, text string) string {
		return strings.Replace(text, lines[k], "", 1)
	})
	reported := map[string]int{}
	for k, line := range lines {
		_, err := programs.run(allBut(k, len(lines)))
		if err == nil {
			t.Errorf("nothing is reported without %s", strings.TrimSpace(line))
			continue
		}
		_, report, _ := strings.Cut(err.Error(), "vta-sim: ")
		kind, _, _ := strings.Cut(report, ":")
		reported[kind]++
	}
	if reported["race"] < 2 || reported["deadlock"] < 2 || reported["race"]+reported["deadlock"]+reported["tokens"] != len(lines) {
		t.Errorf("%d missing tokens are reported as %v", len(lines), reported)
	}
}

// allBut refuses all cases but one.
func allBut(k, n int) map[int]error {
	refused := map[int]error{}
	for other := range n {
		if other != k {
			refused[other] = errors.New("another case runs")
		}
	}
	return refused
}

// TestSlotsHideLatency checks that a second slot lets copies and computations overlap.
func TestSlotsHideLatency(t *testing.T) {
	w := productOf(t, 196, 256, 64)
	cycles := check(t, []kerneltest.Case{caseOf(t, w, "tw=28 tk=4 tc=4 slots=1"), caseOf(t, w, "tw=28 tk=4 tc=4 slots=2")})
	if cycles[1] > cycles[0]/1.3 {
		t.Errorf("%.0f cycles with two slots, %.0f with one", cycles[1], cycles[0])
	}
}
