package codegen_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/gpusim"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

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
