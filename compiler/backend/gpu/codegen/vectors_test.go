package codegen_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/gpusim"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// wideLoads matches loads of four numbers.
var wideLoads = regexp.MustCompile(`ld\.global(\.nc)?\.v4\.f32`)

// TestAlignedNeighboursUseVectorAccesses checks the vector accesses of a map whose arrays are all known to be aligned.
// A part of another tensor is not.
func TestAlignedNeighboursUseVectorAccesses(t *testing.T) {
	b := gpusim.Backend{}
	on := card(t, b)
	for layout, wide := range map[string]int{"": 2, "@[4096,1]": 1} {
		w := parsed(t, "input t0 f32[512,1024]"+layout+"\ninput t1 f32[512,1024]\n"+
			"map t2 f32[512,1024] = (tanh (add [t0 i0 i1] [t1 i0 i1]))\noutput t2\n")
		s := restricted(t, b.Space(w, on, schedule.Strict), map[string]int64{"items": 4})
		k := printPoint(t, s, s.Default(), on)
		made := k.ptx(t)
		loads, stores := len(wideLoads.FindAllString(made, -1)), strings.Count(made, "st.global.v4.f32")
		if loads != wide || stores != 1 {
			t.Errorf("%q: %d loads and %d stores of 16 bytes, by %s:\n%s", layout, loads, stores, k.point, k.text())
		}
	}
}

// alignedInLoop matches an alignment check in each round of a copy.
var alignedInLoop = regexp.MustCompile(`for \([^\n]*\n\s*if \(ALIGNED`)

// TestAlignmentIsCheckedOncePerCopy expects one check for all rounds of a copy, and none for other tensors.
func TestAlignmentIsCheckedOncePerCopy(t *testing.T) {
	b := gpusim.Backend{}
	on := card(t, b)
	w := parsed(t, "input t0 f32[512,512]@[1024,1]\ninput t1 f32[512,512]\n"+
		"sum t2 f32[512,512] over 512 = (mul [t0 i0 r0] [t1 r0 i1])\noutput t2\n")
	s := restricted(t, b.Space(w, on, schedule.Strict), map[string]int64{"stages": 3, "vector": 4})
	k := printPoint(t, s, s.Default(), on)
	text := k.text()
	if at := alignedInLoop.FindString(text); at != "" || !strings.Contains(text, "(ALIGNED(a0))") || strings.Contains(text, "(ALIGNED(a1))") {
		t.Errorf("%s: %s in\n%s", k.point, at, text)
	}
}
