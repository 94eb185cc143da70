package schedule

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
)

func TestTrimIsForWholeLoopsOverPadding(t *testing.T) {
	checkTraces(t, map[string]string{
		"trim 1 0":                "trim: iterator 0 of stage 1 is not a whole axis of a reduction",
		"split 1 2 2 0\ntrim 1 3": "trim: iterator 3 of stage 1 is not a whole axis of a reduction",
		"trim 3 1":                "trim: no padding is known along iterator 1 of stage 3",
		"inline 0\ntrim 1 2":      "trim: no padding is known along iterator 2 of stage 1",
		"unroll 1 2\ntrim 1 2":    "trim: iterator 2 of stage 1 is already annotated",
		"trim 1 2":                "",
	}, func(s *Schedule) {
		g := s.Stages[product]
		if got, want := g.Iters[2].Windows, (Window{Along: -1, Step: 1, First: 0, End: 8}); len(got) != 1 || got[0] != want {
			t.Errorf("what is no padding is %+v, want %+v", got, want)
		}
	})
}

// TestWindowsKeepWhatIsInside: of 3 rows of a window on 7 rows of an image between rows of zeros, the first and the
// last are left out once each; of every second row of 5, more; and tiles of several rows leave out what none of them
// reads.
func TestWindowsKeepWhatIsInside(t *testing.T) {
	for _, c := range []struct {
		w                      Window
		values, atOnce, extent int64
		want                   float64
	}{
		{Window{Step: 1, Stride: 1, First: 1, End: 8}, 7, 1, 3, 19. / 21},
		{Window{Step: 1, Stride: 1, First: 2, End: 9}, 7, 1, 5, 29. / 35},
		{Window{Step: 2, Stride: 1, First: 2, End: 9}, 7, 1, 3, 17. / 21},
		{Window{Step: 1, Stride: 2, First: 1, End: 8}, 4, 1, 3, 10. / 12},
		{Window{Step: 1, Stride: 1, First: 1, End: 8}, 7, 7, 3, 1},
		{Window{Along: -1, Step: 1, First: 0, End: 8}, 1, 1, 10, 0.8},
		{Window{Step: 1, Stride: 1, First: 5, End: 6}, 3, 1, 2, 0},
	} {
		if got := c.w.Kept(c.values, c.atOnce, c.extent); got != c.want {
			t.Errorf("%+v keeps %v of %d, want %v", c.w, got, c.extent, c.want)
		}
	}
}

// TestOnlyZerosThatConstantsMultiplyAreTrimmed: another number adds something, and a factor that is only known at run
// time may be none that gives zero.
func TestOnlyZerosThatConstantsMultiplyAreTrimmed(t *testing.T) {
	const rows = `tilth-workload 1
input t0 f32[6,4]
constant t1 f32[3,4]
map t2 f32[8,4] = (select (and (le 1 i0) (lt i0 7)) [t0 (add i0 -1) i1] 0x0p+00:f32)
sum t3 f32[6,4] over 3 = (mul [t2 (add i0 r0) i1] [t1 r0 i1])
output t3
`
	trim := func(old, other string) error {
		w, err := expr.Parse(strings.Replace(rows, old, other, 1))
		if err != nil {
			t.Fatal(err)
		}
		_, err = Replay(w, []byte("tilth-trace 1\ntrim 1 2\n"))
		return err
	}
	if err := trim("", ""); err != nil {
		t.Error(err)
	}
	for old, other := range map[string]string{"0x0p+00": "0x1p+00", "constant t1": "input t1", "sum": "max", "(and (le 1 i0) (lt i0 7))": "(lt i1 3)"} {
		if err := trim(old, other); err == nil || !strings.Contains(err.Error(), "no padding is known") {
			t.Errorf("%s in place of %s: %v", other, old, err)
		}
	}
}
