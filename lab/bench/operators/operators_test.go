package operators

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/lower"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/agent/hostlock"
	"github.com/tilth-dev/tilth/internal/farm"
	"github.com/tilth-dev/tilth/lab/bench"
)

func TestSetHasFourShapesOfEachOperatorAndBatch(t *testing.T) {
	list, err := operators("ansor", nil, []int64{1, 16})
	if err != nil {
		t.Fatal(err)
	}
	if want := len(families) * 4 * 2; len(list) != want {
		t.Errorf("%d workloads, want %d", len(list), want)
	}
	if _, err := operators("ansor", []string{"C4D"}, []int64{1}); err == nil {
		t.Error("an unknown operator is accepted")
	}
}

func TestEveryOperatorHasADefaultSchedule(t *testing.T) {
	machines := []string{"x86-64-v3", "x86-64-v4", "arm64"}
	for set := range sets {
		list, err := operators(set, nil, []int64{1})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range machines {
			machine, err := target.Parse(name, 2)
			if err != nil {
				t.Fatal(err)
			}
			for k, w := range list {
				if testing.Short() && k%4 != (slices.Index(machines, name)+len(set))%4 { // a quarter of the shapes
					continue
				}
				s, err := registry.Space(w.Workload, machine, schedule.Default)
				if err != nil {
					t.Fatal(err)
				}
				applied, err := s.Apply(s.Default())
				if err == nil {
					_, err = lower.Schedule(applied)
				}
				if err != nil {
					t.Errorf("%s (%s) on %s: %v", w.name, w.shape, name, err)
				}
			}
		}
	}
}

// TestTransposedSpreadsEachElementOverItsWindow checks that a transposed convolution adds each image element to its
// window of the result.
func TestTransposedSpreadsEachElementOverItsWindow(t *testing.T) {
	const size, in, out, kernel, stride, pad = 3, 2, 3, 4, 2, 1
	tensor, _ := transposed(1, []int64{size, size, in, out, kernel, stride, pad})
	w, err := expr.NewWorkload([]*expr.Tensor{tensor})
	if err != nil {
		t.Fatal(err)
	}
	x, weights := array.New(float, 1, size, size, in), array.New(float, kernel, kernel, in, out)
	for _, a := range []*array.Array{x, weights} {
		for i := range a.Len() {
			a.SetFloat(i, float64(i*7%11-5))
		}
	}
	got, err := expr.Evaluate(w, []*array.Array{x, weights})
	if err != nil {
		t.Fatal(err)
	}
	const extent = size * stride
	want := make([]float64, extent*extent*out)
	for i := range int64(size * size * kernel * kernel * in * out) {
		o, c, s, r, col, row := i%out, i/out%in, i/out/in%kernel, i/out/in/kernel%kernel, i/out/in/kernel/kernel%size, i/out/in/kernel/kernel/size
		y, z := row*stride+r-pad, col*stride+s-pad
		if y >= 0 && y < extent && z >= 0 && z < extent {
			want[(y*extent+z)*out+o] += x.Float((row*size+col)*in+c) * weights.Float(((r*kernel+s)*in+c)*out+o)
		}
	}
	for i, v := range want {
		if got[0].Float(int64(i)) != v {
			t.Fatalf("element %d is %v, want %v", i, got[0].Float(int64(i)), v)
		}
	}
}

// TestLimitsAreThoseThatAllCommandsSee is a regression test: a kernel's share of the limit differed from that of
// 'tilth tune'.
func TestLimitsAreThoseThatAllCommandsSee(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("TMPDIR", t.TempDir())
	b, err := newSuite(t.Context(), options{dir: t.TempDir()}, 1, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	lock, err := hostlock.New(hostlock.DefaultDir())
	if err != nil {
		t.Fatal(err)
	}
	want, err := farm.MeasureRates(t.Context(), b.tc, []*target.Target{b.target}, lock, filepath.Join(cache, "tilth"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := b.rates(t.Context())
	if err != nil || !bytes.Equal(got.Encode(), want[0].Encode()) {
		t.Errorf("the machine does %v, %v; others see %v", got, err, want[0])
	}
}

// keptRows opens the rows of a machine.
func keptRows(t *testing.T, folder string) *rows {
	t.Helper()
	r, err := bench.Open[row](folder, "epyc-avx2", rowsName)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRunGoesOnWhereOneOfTheSameVersionEnded(t *testing.T) {
	folder := t.TempDir()
	r := keptRows(t, folder)
	one := row{Operator: "GMM", Shape: "512, 512, 512", Batch: 1, Threads: 1, Version: "v1", FlopSeconds: 1, ByteSeconds: 2, DefaultSeconds: 4}
	other := one
	other.Operator, other.Shape = "C1D", "256, 64, 128, 3, 2, 1"
	if err := r.Add([]row{one, other}); err != nil {
		t.Fatal(err)
	}
	again := one
	again.DefaultSeconds = 2
	if err := r.Add([]row{again}); err != nil {
		t.Fatal(err)
	}
	r = keptRows(t, folder)
	newer, unknown := one, one
	newer.Version, unknown.Version = "v2", ""
	for _, c := range []struct {
		name string
		want row
		have bool
	}{{"measured", one, true}, {"another version", newer, false}, {"of no version", unknown, false}} {
		if have(r, c.want) != c.have {
			t.Errorf("%s: have is %v", c.name, !c.have)
		}
	}
	list := sorted(r.Rows)
	if len(list) != 2 || list[0].Operator != "C1D" || list[1].DefaultSeconds != 2 {
		t.Errorf("got %+v", list)
	}
	var out strings.Builder
	writeTable(&out, "epyc-avx2", list)
	for _, want := range []string{"batch 1, 1 thread; epyc-avx2: ", "| 2.00 s | bytes | 2.00 s | - | 100 % | v1 |", "1 of 2 reach 90 %"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in %s", want, out.String())
		}
	}
}

// TestTableOfASetHasItsRowsAlone uses a file with rows of two sets.
func TestTableOfASetHasItsRowsAlone(t *testing.T) {
	folder := t.TempDir()
	one := row{Operator: "C2D", Shape: "7, 7, 512, 512, 3, 1, 1", Batch: 1, Threads: 1, Version: "v1", FlopSeconds: 1, DefaultSeconds: 4}
	other := one
	other.Operator, other.Shape = "ConvNeXt", "7, 7, 768, 7, 1, 3"
	if err := keptRows(t, folder).Add([]row{one, other}); err != nil {
		t.Fatal(err)
	}
	for set, want := range map[string]string{"ansor": "C2D", "grouped": "ConvNeXt"} {
		var out strings.Builder
		if err := runTable([]string{"-results", folder, "-set", set}, &out); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), "| v1 |"); n != 1 || !strings.Contains(out.String(), "\n| "+want+" (") {
			t.Errorf("the table of %s is\n%s", set, out.String())
		}
	}
	if err := runTable([]string{"-results", folder, "-set", "other"}, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), "ansor, blocks, grouped, library") {
		t.Errorf("a set that there is not: %v", err)
	}
}
