package codegen_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/gpu/codegen"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/dialect"
	"github.com/tilth-dev/tilth/compiler/backend/gpusim"
	"github.com/tilth-dev/tilth/compiler/ctext"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// wideLoads are loads of four numbers.
var wideLoads = regexp.MustCompile(`ld\.global(\.nc)?\.v4\.f32`)

// TestNeighboursAreReadAndWrittenAtOnce by the threads of a map, where all arrays are known to be aligned. A part of
// another tensor is not.
func TestNeighboursAreReadAndWrittenAtOnce(t *testing.T) {
	b := gpusim.Backend{}
	on := card(t, b)
	for layout, wide := range map[string]int{"": 2, "@[4096,1]": 1} {
		w, err := expr.Parse("tilth-workload 1\ninput t0 f32[512,1024]" + layout + "\ninput t1 f32[512,1024]\n" +
			"map t2 f32[512,1024] = (tanh (add [t0 i0 i1] [t1 i0 i1]))\noutput t2\n")
		if err != nil {
			t.Fatal(err)
		}
		s, err := b.Space(w, on, schedule.Strict).Restrict(map[string][]int64{"items": {4}})
		if err != nil {
			t.Fatal(err)
		}
		made, err := s.Apply(s.Default())
		if err != nil {
			t.Fatal(err)
		}
		f, err := codegen.Lower(made, on.GPU, nil)
		if err != nil {
			t.Fatal(err)
		}
		var helpers ctext.Declarations
		kernel := codegen.Kernels("sum", f, &helpers, dialect.Text)[0].Text
		text, err := ptx(t, "sm_80", helpers.Text()+kernel)
		if err != nil {
			t.Fatal(err)
		}
		loads, stores := len(wideLoads.FindAllString(text, -1)), strings.Count(text, "st.global.v4.f32")
		if loads != wide || stores != 1 {
			t.Errorf("%q: %d loads and %d stores of 16 bytes, by %s:\n%s", layout, loads, stores, s.Format(s.Default()), kernel)
		}
	}
}

// alignedInLoop is where a kernel asks in each round of a copy whether it is aligned.
var alignedInLoop = regexp.MustCompile(`for \([^\n]*\n\s*if \(ALIGNED`)

// TestWhetherPartsAreAlignedIsAskedOnce for all rounds of a copy, and not at all of other tensors.
func TestWhetherPartsAreAlignedIsAskedOnce(t *testing.T) {
	b := gpusim.Backend{}
	on := card(t, b)
	w, err := expr.Parse("tilth-workload 1\ninput t0 f32[512,512]@[1024,1]\ninput t1 f32[512,512]\n" +
		"sum t2 f32[512,512] over 512 = (mul [t0 i0 r0] [t1 r0 i1])\noutput t2\n")
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.Space(w, on, schedule.Strict).Restrict(map[string][]int64{"stages": {3}, "vector": {4}})
	if err != nil {
		t.Fatal(err)
	}
	made, err := s.Apply(s.Default())
	if err != nil {
		t.Fatal(err)
	}
	f, err := codegen.Lower(made, on.GPU, nil)
	if err != nil {
		t.Fatal(err)
	}
	var helpers ctext.Declarations
	text := codegen.Kernels("product", f, &helpers, dialect.Text)[0].Text
	if at := alignedInLoop.FindString(text); at != "" || !strings.Contains(text, "(ALIGNED(a0))") || strings.Contains(text, "(ALIGNED(a1))") {
		t.Errorf("%s: %s in\n%s", s.Format(s.Default()), at, text)
	}
}
