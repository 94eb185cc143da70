package codegen_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/codegen"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/dialect"
	"github.com/tilth-dev/tilth/compiler/backend/gpusim"
	"github.com/tilth-dev/tilth/compiler/ctext"
	"github.com/tilth-dev/tilth/compiler/expr/exprtest"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
)

// TestBlocksThatWalkKeepResultsInRegisters: persistent blocks fetch ahead and multiply as those do that have a tile
// each, and nothing of a thread's lies in memory, whether they have whole sums or equal shares.
func TestBlocksThatWalkKeepResultsInRegisters(t *testing.T) {
	b := gpusim.Backend{}
	on := card(t, b)
	for algorithm, want := range map[string][]string{
		"direct":        {"fma.rn.f32", "ld.shared"},
		"F16":           {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "cp.async.wait_group 1"},
		"warpgroup F16": {"wgmma.mma_async", "cp.async.bulk.tensor.2d", "mbarrier.try_wait.parity"},
	} {
		s := b.Space(exprtest.ProductOf(t, array.Float16, 2048, 512, 3072), on, schedule.Strict)
		s = s.Of(s.Algorithms()[slices.IndexFunc(s.Algorithms(), func(a space.Algorithm) bool { return a.Name == algorithm })])
		for cut := range int64(2) {
			stages := map[bool]int64{false: 3, true: 4}[algorithm == "warpgroup F16"]
			p := pointWith(s, map[string]int64{"parts": 1, "stages": stages, "walkers": 1, "band": 4, "cut": cut})
			if err := s.Legal(p); err != nil {
				t.Fatal(err)
			}
			made, err := s.Apply(p)
			if err != nil {
				t.Fatal(err)
			}
			f, err := codegen.Lower(made, on.GPU, nil)
			if err != nil {
				t.Fatal(err)
			}
			var helpers ctext.Declarations
			kernels := codegen.Kernels("product", f, &helpers, dialect.Text)
			if len(kernels) != int(1+cut) || kernels[0].Blocks != int64(on.GPU.Multiprocessors) {
				t.Fatalf("%s has %d launches, the first of %d blocks", s.Format(p), len(kernels), kernels[0].Blocks)
			}
			arch, text := chips(kernels[0].Text)[0], helpers.Text()
			for _, k := range kernels {
				text += k.Text
			}
			text, err = ptx(t, arch, text)
			if err != nil {
				t.Fatal(err)
			}
			spillsNothing(t, arch, text)
			missing := slices.IndexFunc(want, func(word string) bool { return !strings.Contains(text, word) })
			if strings.Contains(text, ".local") || strings.Contains(text, "atom.") || missing >= 0 {
				t.Errorf("%s keeps results in memory, adds to what others add to, or lacks an instruction of %v:\n%s", s.Format(p), want, kernels[0].Text)
			}
		}
	}
}

// pointWith is the default point with other values of some knobs, where these can be had.
func pointWith(s *space.Space, values map[string]int64) space.Point {
	p := s.Default()
	for k, knob := range s.Knobs {
		if v, ok := values[knob.Name]; ok && s.Active(p, k) && slices.Contains(knob.Values, v) {
			p[k] = slices.Index(knob.Values, v)
		}
	}
	return p
}
