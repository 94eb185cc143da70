package schedule

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestStrassenMultipliesMatrices: out ((L a) · (R b)) is the product of two 2x2 matrices.
func TestStrassenMultipliesMatrices(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var a, b [4]float64
	for k := range a {
		a[k], b[k] = rng.NormFloat64(), rng.NormFloat64()
	}
	sum := func(coefficients []float64, term func(k int64) float64) float64 {
		var one [1]float64
		combine(one[:], coefficients, func(k, _ int64) float64 { return term(k) })
		return one[0]
	}
	for block, row := range strassen.out {
		got := sum(row, func(p int64) float64 {
			left := sum(strassen.left[p], func(k int64) float64 { return a[k] })
			return left * sum(strassen.right[p], func(k int64) float64 { return b[k] })
		})
		i, j := block/2, block%2
		if want := a[2*i]*b[j] + a[2*i+1]*b[2+j]; math.Abs(got-want) > 1e-12 {
			t.Errorf("block %d is %g, not %g", block, got, want)
		}
	}
}

func TestGrowthOfStrassensRoundingErrors(t *testing.T) {
	if got := StrassenGrowth(); math.Abs(got-math.Sqrt(6)) > 1e-12 {
		t.Errorf("got %g", got)
	}
}

const productText = `tilth-workload 1
input t0 f32[7,9]
constant t1 f32[9,21]
sum t2 f32[7,21] over 9 = (mul [t0 i0 r0] [t1 r0 i1])
map t3 f32[7,21] = (max [t2 i0 i1] 0x0p+00:f32)
output t3
`

// TestStrassenRefusesOtherReductions has a change of the product or a trace for each reason to refuse.
func TestStrassenRefusesOtherReductions(t *testing.T) {
	cases := map[string]struct{ old, new, trace, want string }{
		"no such stage":   {"", "", "strassen 7 8", "there is no stage 7"},
		"a map":           {"", "", "strassen 1 8", "stage 1 is not a sum of floats"},
		"no group":        {"", "", "strassen 0 0", "is not between 1 and"},
		"a huge group":    {"", "", "strassen 0 2000", "is not between 1 and"},
		"twice":           {"", "", "strassen 0 8\nstrassen 0 8", "stage 0 is not a sum of floats"},
		"after a split":   {"", "", "split 0 0 2 0\nstrassen 0 8", "stage 0 was already scheduled"},
		"packed":          {"", "", "pack 0 0 0 0 1 0 0\nstrassen 0 8", "constant 0, which is already packed"},
		"an offset":       {"[t0 i0 r0]", "[t0 i0 (sub 8 r0)]", "strassen 0 8", "by its axes alone"},
		"a diagonal":      {"[t0 i0 r0]", "[t0 i0 (floordiv (add i1 r0) 4)]", "strassen 0 8", "not of one operand alone"},
		"a maximum":       {"sum t2", "max t2", "strassen 0 8", "is not a sum of floats"},
		"two activations": {"constant t1", "input t1", "strassen 0 8", "does not multiply an activation by a constant"},
		"a vector":        {"[t0 i0 r0]", "[t0 0 r0]", "strassen 0 8", "not of one operand alone"},
		"unknown sums":    {"", "", "strassen 0 8 2", "does not take [8 2]"},
		"named sums":      {"", "", "strassen 0 8 0", "does not take [8 0]"},
		"a sum of sums":   {"(mul", "(add", "strassen 0 8", "is not a sum of products"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := parseWorkload(t, strings.Replace(productText, c.old, c.new, 1))
			_, err := Replay(w, []byte(traceHeader+"\n"+c.trace+"\n"))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestComputedSumsAddNothingToTheWeights: compiled ones of blocks of 5 x 16 take the place of 9 x 21 elements.
func TestComputedSumsAddNothingToTheWeights(t *testing.T) {
	for trace, want := range map[string]struct {
		added  int64
		stages int
		name   string
	}{
		"strassen 0 8":   {4 * (7*5*16 - 9*21), 4, "Strassen"},
		"strassen 0 8 1": {0, 5, "Strassen+sums"},
	} {
		text := traceHeader + "\n" + trace + "\n"
		s, err := Replay(parseWorkload(t, productText), []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		sums, all := s.AddedBytes()
		if sums != want.added || all != want.added || len(s.Stages) != want.stages || !slices.Equal(s.Algorithms(), []string{want.name}) {
			t.Errorf("%s: %d of %d bytes, %d stages, %v", trace, sums, all, len(s.Stages), s.Algorithms())
		}
		if string(s.Trace()) != text {
			t.Errorf("%s is written as\n%s", trace, s.Trace())
		}
	}
}

func TestStrassenNeedsTheDefaultLevel(t *testing.T) {
	text := []byte(traceHeader + "\nstrassen 0 8\n")
	s, err := Replay(parseWorkload(t, productText), text)
	if err != nil {
		t.Fatal(err)
	}
	if s.Numerics() != Default || s.ErrorGrowth() != StrassenGrowth() {
		t.Errorf("the schedule needs %v, growth %g", s.Numerics(), s.ErrorGrowth())
	}
}
