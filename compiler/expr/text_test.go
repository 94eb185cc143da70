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
	f.Fuzz(func(t *testing.T, text string) {
		w, err := Parse(text)
		if err == nil && w.Text() != text && w.Text() != text+"\n" {
			t.Errorf("accepted a text that is not canonical")
		}
	})
}
