package expr

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
)

func matmul(t testing.TB) *Workload {
	a, b := NewInput("a", array.Float32, 4, 8), NewConstant("b", array.Float32, 8, 16)
	c := ReduceOver("c", Sum, []int64{4, 16}, []int64{8}, func(i, r []Expr) Expr {
		return MulE(a.At(i[0], r[0]), b.At(r[0], i[1]))
	})
	relu := Compute("relu", c.Shape, func(i []Expr) Expr { return MaxE(c.At(i...), F(array.Float32, 0)) })
	w, err := NewWorkload([]*Tensor{relu})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestTextIsCanonical(t *testing.T) {
	w := matmul(t)
	const want = `tilth-workload 1
input t0 f32[4,8]
constant t1 f32[8,16]
sum t2 f32[4,16] over 8 = (mul [t0 i0 r0] [t1 r0 i1])
map t3 f32[4,16] = (max [t2 i0 i1] 0x0p+00:f32)
output t3
`
	if got := w.Text(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	back, err := Parse(want)
	if err != nil {
		t.Fatal(err)
	}
	if back.Digest() != w.Digest() {
		t.Error("digest changed by a round trip")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(matmul(f).Text())
	f.Add(openRows)
	f.Fuzz(func(t *testing.T, text string) {
		w, err := Parse(text)
		if err == nil && w.Text() != text && w.Text() != text+"\n" {
			t.Errorf("accepted a text that is not canonical")
		}
	})
}

// TestPartsOfLargerTensors: strides are kept by the canonical form, which joins dimensions only where memory does.
func TestPartsOfLargerTensors(t *testing.T) {
	x := NewInput("x", array.Float32, 1, 4, 5, 8)
	x.Strides = []int64{4 * 5 * 24, 5 * 24, 24, 1}
	y := Compute("y", x.Shape, func(i []Expr) Expr { return MaxE(x.At(i...), F(array.Float32, 0)) })
	w, err := NewWorkload([]*Tensor{y})
	if err != nil {
		t.Fatal(err)
	}
	const want = `tilth-workload 1
input t0 f32[20,8]@[24,1]
map t1 f32[20,8] = (max [t0 i0 i1] 0x0p+00:f32)
output t1
`
	if got := w.Merge().Text(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if _, err := Parse(want); err != nil {
		t.Error(err)
	}
}

func TestInvalidStridesAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"overlap":          "input t0 f32[4,8]@[7,1]\nmap t1 f32[4,8] = [t0 i0 i1]\noutput t1\n",
		"too few":          "input t0 f32[4,8]@[8]\nmap t1 f32[4,8] = [t0 i0 i1]\noutput t1\n",
		"too large":        "input t0 f32[4,8]@[9000000000000000000,1]\nmap t1 f32[4,8] = [t0 i0 i1]\noutput t1\n",
		"constant":         "constant t0 f32[4,8]@[9,1]\nmap t1 f32[4,8] = [t0 i0 i1]\noutput t1\n",
		"inside":           "input t0 f32[8]\nmap t1 f32[8]@[2] = [t0 i0]\nmap t2 f32[8] = [t1 i0]\noutput t2\n",
		"no bracket":       "input t0 f32[8]@2\nmap t1 f32[8] = [t0 i0]\noutput t1\n",
		"zero and nothing": "input t0 f32[8]@[0]\nmap t1 f32[8] = [t0 i0]\noutput t1\n",
	} {
		if _, err := Parse(textHeader + "\n" + text); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
