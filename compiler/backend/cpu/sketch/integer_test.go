package sketch

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// integerConv returns a 3x3 convolution of 28x28 positions from 128 channels to 128, in small integers.
func integerConv(t *testing.T) *expr.Workload {
	t.Helper()
	w, err := expr.Parse(`tilth-workload 1
input t0 u8[30,30,128]
constant t1 i8[3,3,128,128]
sum t2 i32[28,28,128] over 3,3,128 = (mul (cast i32 [t0 (add i0 r0) (add i1 r1) r2]) (cast i32 [t1 r0 r1 r2 i2]))
output t2
`)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestRatesChooseBetweenFloatsAndIntegers checks that an instruction with four terms per lane makes the direct sum of
// integers faster than Winograd's algorithm in floats. One with two terms that does not accumulate does not.
func TestRatesChooseBetweenFloatsAndIntegers(t *testing.T) {
	for _, c := range []struct {
		name     string
		target   string
		features []string
		want     string
	}{
		{"AVX2", "x86-64-v3", nil, "F("},
		{"AVX-VNNI", "x86-64-v3", []string{"avxvnni"}, ""},
		{"AVX-512 VNNI", "x86-64-v4", []string{"avx512vnni"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := New(integerConv(t), withFeatures(Target(t, c.target), c.features), schedule.Default)
			applied, err := s.Apply(s.Default())
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(applied.Algorithms(), " ")
			if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
				t.Errorf("the default schedule's algorithms are %q, want %q", got, c.want)
			}
		})
	}
}

// TestStrictNumericsSumIntegersDirectly checks that only direct sums of integers are exact.
func TestStrictNumericsSumIntegersDirectly(t *testing.T) {
	s := New(integerConv(t), Target(t, "x86-64-v3"), schedule.Strict)
	if len(s.Algorithms()) > 1 {
		t.Errorf("algorithms %v", s.Algorithms())
	}
}

func withFeatures(t *target.Target, features []string) *target.Target {
	d := *t
	d.CPU.Features = slices.Sorted(slices.Values(slices.Concat(d.CPU.Features, features)))
	return &d
}

// TestIntegersOfNarrowGroupsAreMultipliedByFours uses vectors with channels of several groups.
func TestIntegersOfNarrowGroupsAreMultipliedByFours(t *testing.T) {
	for _, channels := range []int64{4, 8, 12, 16, 32} {
		w, err := expr.Parse(strings.NewReplacer("IN", strconv.FormatInt(channels, 10), "ALL", strconv.FormatInt(8*channels, 10)).Replace(`tilth-workload 1
input t0 u8[16,16,ALL]
constant t1 i8[3,3,IN,ALL]
sum t2 i32[14,14,ALL] over 3,3,IN = (mul (cast i32 [t0 (add i0 r0) (add i1 r1) (add (mul (floordiv i2 IN) IN) r2)]) (cast i32 [t1 r0 r1 r2 i2]))
output t2
`))
		if err != nil {
			t.Fatal(err)
		}
		s := New(w, withFeatures(Target(t, "x86-64-v4"), []string{"avx512vnni"}), schedule.Strict)
		applied, err := s.Apply(s.Default())
		if err != nil {
			t.Fatal(err)
		}
		if trace := string(applied.Trace()); !strings.Contains(trace, "\ndot ") {
			t.Errorf("%d channels a group are multiplied one by one:\n%s", channels, trace)
		}
	}
}
