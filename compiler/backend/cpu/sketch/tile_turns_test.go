package sketch_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// byteWindows returns a depthwise convolution of a padded image of bytes with the given rows and columns.
func byteWindows(t *testing.T, data, weights string, rows, columns, stride int64) *expr.Workload {
	t.Helper()
	text := `tilth-workload 1
input t0 {data}[{in},{in},96]
constant t1 {weights}[{rows},{columns},96]
map t2 {data}[{padded},{padded},96] = (select (and (and (le 1 i0) (lt i0 {end})) (and (le 1 i1) (lt i1 {end}))) [t0 (sub i0 1) (sub i1 1) i2] 0:{data})
sum t3 i32[8,8,96] over {rows},{columns} = (mul (cast i32 [t2 (add (mul i0 {stride}) r0) (add (mul i1 {stride}) r1) i2]) (cast i32 [t1 r0 r1 i2]))
output t3
`
	padded := 7*stride + max(rows, columns)
	text = strings.NewReplacer("{data}", data, "{weights}", weights, "{rows}", fmt.Sprint(rows), "{columns}", fmt.Sprint(columns),
		"{stride}", fmt.Sprint(stride), "{in}", fmt.Sprint(padded-2), "{padded}", fmt.Sprint(padded), "{end}", fmt.Sprint(padded-1)).Replace(text)
	if stride == 1 {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "(mul i0 1)", "i0"), "(mul i1 1)", "i1")
	}
	w, err := expr.Parse(text)
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return w
}

// TestTermsOfAWindowTakeTurns requires an instruction that multiplies several terms, and a register of terms that
// serves several rows.
func TestTermsOfAWindowTakeTurns(t *testing.T) {
	for _, c := range []struct {
		target, data, weights string
		rows, columns, stride int64
		extended              bool
		terms                 string // the terms per step; empty for a plain sum
	}{
		{"sapphire-rapids", "u8", "i8", 3, 3, 1, true, "4"},
		{"sapphire-rapids", "u8", "i8", 3, 3, 2, false, ""},
		{"sapphire-rapids", "u8", "i8", 5, 5, 2, true, "4"},
		{"sapphire-rapids", "u8", "i8", 4, 4, 1, false, "4"},
		{"sapphire-rapids", "u8", "i8", 5, 5, 1, true, "4"},
		{"sapphire-rapids", "i8", "i8", 3, 3, 1, false, ""},
		{"x86-64-v3", "u8", "i8", 3, 3, 1, false, ""},
		{"sapphire-rapids", "u8", "i8", 1, 5, 1, false, ""},
		{"sapphire-rapids", "u8", "i8", 3, 2, 1, false, ""},
		{"arm64", "u8", "i8", 3, 3, 1, false, ""},
	} {
		name := fmt.Sprintf("%s %s by %s %dx%d/%d", c.target, c.data, c.weights, c.rows, c.columns, c.stride)
		s := sketch.New(byteWindows(t, c.data, c.weights, c.rows, c.columns, c.stride), sketch.Target(t, c.target), schedule.Strict)
		applied, err := s.Apply(s.Default())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		trace := string(applied.Trace())
		for step, want := range map[string]bool{"\nextend ": c.extended, "\ndot ": c.terms != "", "\nextend 2 " + c.terms + "\n": c.extended} {
			if strings.Contains(trace, step) != want {
				t.Errorf("%s: the trace has %q: %v, want %v:\n%s", name, step, !want, want, trace)
			}
		}
	}
}
