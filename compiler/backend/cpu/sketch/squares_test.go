package sketch

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
)

// squareTarget returns a processor that multiplies two rows by two columns.
func squareTarget(t *testing.T) *target.Target {
	t.Helper()
	on := Target(t, "arm64").Clone()
	on.CPU.Features = slices.Sorted(slices.Values(append(on.CPU.Features, "dotprod", "i8mm", "bf16")))
	return on
}

// bytesProduct returns a product of bytes with the given rows and terms by 64 columns.
func bytesProduct(t *testing.T, rows, terms int64) *expr.Workload {
	t.Helper()
	w, err := expr.Parse(fmt.Sprintf("tilth-workload 1\ninput t0 u8[%[1]d,%[2]d]\nconstant t1 i8[%[2]d,64]\n"+
		"sum t2 i32[%[1]d,64] over %[2]d = (mul (cast i32 [t0 i0 r0]) (cast i32 [t1 r0 i1]))\noutput t2\n", rows, terms))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestSquaresAreTheDefaultWhereRowsComeInPairs exists because squares take about half of the cycles. A single row has
// no partner.
func TestSquaresAreTheDefaultWhereRowsComeInPairs(t *testing.T) {
	on := squareTarget(t)
	if s := New(bytesProduct(t, 64, 256), Target(t, "neoverse-v1"), schedule.Strict); s.Algorithm(s.Default()) != MMLAI8 {
		t.Error("where there is SVE, the default is another")
	}
	for _, rows := range []int64{2, 7, 64, 256} {
		s := New(bytesProduct(t, rows, 256), on, schedule.Strict)
		if by := s.Algorithm(s.Default()); by != MMLAI8 {
			t.Errorf("the default of %d rows is %s", rows, by.Name)
		}
		direct, squares := s.Of(searchspace.Direct), s.Of(MMLAI8)
		if ratio := squares.Cost(squares.Default()) / direct.Cost(direct.Default()); rows >= 64 && (ratio < 0.4 || ratio > 0.8) {
			t.Errorf("%d rows cost %.2f times as much in squares", rows, ratio)
		}
	}
	for _, w := range []*expr.Workload{bytesProduct(t, 1, 256), bytesProduct(t, 64, 12)} {
		if s := New(w, on, schedule.Strict); len(s.Algorithms()) != 1 {
			t.Errorf("algorithms are %v of\n%s", s.Algorithms(), w.Text())
		}
	}
}

// TestTilesOfSquaresHaveAnEvenNumberOfPositions exists because plain arithmetic would multiply an odd position.
func TestTilesOfSquaresHaveAnEvenNumberOfPositions(t *testing.T) {
	s := New(bytesProduct(t, 64, 256), squareTarget(t), schedule.Strict).Of(MMLAI8)
	for _, c := range []struct {
		point string
		legal bool
	}{{"tv=2 tw=4", true}, {"tv=2 tw=5", false}, {"tv=2 tw=1", false}, {"tv=3 tw=8", true}, {"tv=4 tw=6", false}} {
		if _, ok := s.Parse(c.point); ok != c.legal {
			t.Errorf("%s is legal: %v, want %v", c.point, ok, c.legal)
		}
	}
}

// TestSquaresOfBFloat16AreNotedInASchedule checks that the schedule records them, so that strict numerics can refuse
// it.
func TestSquaresOfBFloat16AreNotedInASchedule(t *testing.T) {
	text := strings.NewReplacer("u8", "bf16", "i8", "bf16", "i32", "f32").Replace(bytesProduct(t, 64, 256).Text())
	w, err := expr.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	s := New(w, squareTarget(t), schedule.Fast)
	for by, want := range map[searchspace.Algorithm]schedule.Numerics{searchspace.Direct: schedule.Strict, MMLABF16: schedule.Fast} {
		part := s.Of(by)
		made, err := part.Apply(part.Default())
		if err != nil {
			t.Fatal(err)
		}
		if got := made.Numerics(); got != want {
			t.Errorf("%s needs %v numerics, want %v", by.Name, got, want)
		}
	}
}
