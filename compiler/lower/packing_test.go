package lower_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/lower"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

func randomArray(rng *rand.Rand, d array.DType, shape ...int64) *array.Array {
	a := array.New(d, shape...)
	for k := range a.Len() {
		a.SetFloat(k, rng.NormFloat64())
	}
	return a
}

// checkFill compares Fill with the evaluator.
func checkFill(t *testing.T, p ir.Pack, constant *array.Array) {
	t.Helper()
	want, err := expr.Evaluate(p.Workload, []*array.Array{constant})
	if err != nil {
		t.Fatal(err)
	}
	if got := lower.FillPack(p, constant); !bytes.Equal(got.Data, want[0].Data) {
		t.Errorf("dims %v of %v: the packed buffer differs", p.Dims, constant.Shape)
	}
}

func TestFillIsThePackedWorkload(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		shape := []int64{1 + rng.Int64N(5), 1 + rng.Int64N(9), 1 + rng.Int64N(7)}
		var dims []schedule.PackDim
		for d := range shape {
			if factor := rng.Int64N(6); factor > 0 {
				dims = append(dims, schedule.PackDim{Dim: d, Factor: factor}, schedule.PackDim{Dim: d, Factor: factor, Inner: true})
			} else {
				dims = append(dims, schedule.PackDim{Dim: d})
			}
		}
		rng.Shuffle(len(dims), func(i, j int) { dims[i], dims[j] = dims[j], dims[i] })
		for _, d := range []array.DType{array.Float32, array.Int8, array.Float64} {
			constant := expr.NewConstant("c", d, shape...)
			checkFill(t, lower.NewPack(0, constant, nil, dims), randomArray(rng, d, shape...))
		}
	}
}

// TestFillTransformsWinogradsWeights: bit by bit as the expressions say, whatever the order of the weights'
// dimensions.
func TestFillTransformsWinogradsWeights(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for _, text := range []string{"f32[3,3,4,5]; r0 r1 r2 i2", "f32[5,4,3,3]; i2 r2 r0 r1", "f32[3,4,5,3]; r1 r2 i2 r0"} {
		shape, index, _ := strings.Cut(text, "; ")
		for _, as := range []array.DType{array.Invalid, array.BFloat16} {
			m := int64(4)
			if as != array.Invalid {
				m = 2
			}
			w, err := expr.Parse("tilth-workload 1\ninput t0 f32[10,9,4]\nconstant t1 " + shape + "\n" +
				"sum t2 f32[8,7,5] over 3,3,4 = (mul [t0 (add i0 r0) (add i1 r1) r2] [t1 " + index + "])\noutput t2\n")
			if err != nil {
				t.Fatal(err)
			}
			s := schedule.New(w)
			if _, err := s.WinogradAs(0, m, m, as); err != nil {
				t.Fatal(err)
			}
			if err := s.Pack(0, []schedule.PackDim{{Dim: 0}, {Dim: 1}, {Dim: 3, Factor: 4}, {Dim: 2}, {Dim: 3, Factor: 4, Inner: true}}); err != nil {
				t.Fatal(err)
			}
			f, err := lower.Schedule(s)
			if err != nil {
				t.Fatal(err)
			}
			checkFill(t, f.Prepared[0], randomArray(rng, array.Float32, w.Constants[0].Shape...))
		}
	}
}

// TestPackingNeedsNoWorkspace: kernels that prepare constants have none, however many channels there are.
func TestPackingNeedsNoWorkspace(t *testing.T) {
	w, err := expr.Parse(`tilth-workload 1
input t0 f32[10,10,64]
constant t1 f32[3,3,64,4096]
sum t2 f32[8,8,4096] over 3,3,64 = (mul [t0 (add i0 r0) (add i1 r1) r2] [t1 r0 r1 r2 i2])
output t2
`)
	if err != nil {
		t.Fatal(err)
	}
	s := schedule.New(w)
	if _, err := s.Winograd(0, 4, 4); err != nil {
		t.Fatal(err)
	}
	f, err := lower.Schedule(s)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := lower.PackSchedule(f.Prepared[0])
	if err != nil {
		t.Fatal(err)
	}
	lowered, err := lower.Schedule(packed)
	if err != nil {
		t.Fatal(err)
	}
	if n := scratchElements(lowered.Body); n > 3*4 {
		t.Errorf("%d elements of scratch, want those of three vectors of four", n)
	}
}

func scratchElements(b ir.Block) (n int64) {
	for _, st := range b {
		switch x := st.(type) {
		case *ir.Alloc:
			n += x.Buffer.Elements()
		case *ir.For:
			n += scratchElements(x.Body)
		case *ir.If:
			n += scratchElements(x.Then) + scratchElements(x.Else)
		}
	}
	return n
}

// TestFillExtendsTerms: with zeros behind each row of terms, wherever their dimension is.
func TestFillExtendsTerms(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for _, right := range []string{"i8[3,13,21]; r0 r1 i1", "i8[21,3,13]; i1 r0 r1", "i8[3,15,21]; r0 r1 i1"} {
		shape, index, _ := strings.Cut(right, "; ")
		w, err := expr.Parse("tilth-workload 1\ninput t0 i8[7,3,13]\nconstant t1 " + shape +
			"\nsum t2 i32[7,21] over 3,13 = (mul (cast i32 [t0 i0 r0 r1]) (cast i32 [t1 " + index + "]))\noutput t2\n")
		if err != nil {
			t.Fatal(err)
		}
		s := schedule.New(w)
		if _, err := s.Extend(0, 8); err != nil {
			t.Fatal(err)
		}
		f, err := lower.Schedule(s)
		if err != nil {
			t.Fatal(err)
		}
		checkFill(t, f.Prepared[0], randomArray(rng, array.Int8, w.Constants[0].Shape...))
	}
}

// TestFillAdjoinsTerms: wherever the weights' dimensions of columns and channels are, and in a wider type.
func TestFillAdjoinsTerms(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for _, weights := range []string{"i8[2,5,3,4]; r0 r1 r2 i1", "i8[4,3,2,5]; i1 r2 r0 r1", "i8[3,5,2,4]; r2 r1 r0 i1"} {
		for _, as := range []array.DType{array.Invalid, array.Int16} {
			shape, index, _ := strings.Cut(weights, "; ")
			w, err := expr.Parse("tilth-workload 1\ninput t0 u8[2,11,3]\nconstant t1 " + shape +
				"\nsum t2 i32[7,4] over 2,5,3 = (mul (cast i32 [t0 r0 (add i0 r1) r2]) (cast i32 [t1 " + index + "]))\noutput t2\n")
			if err != nil {
				t.Fatal(err)
			}
			s := schedule.New(w)
			if _, err := s.Adjoin(0, 4, as); err != nil {
				t.Fatal(err)
			}
			f, err := lower.Schedule(s)
			if err != nil {
				t.Fatal(err)
			}
			checkFill(t, f.Prepared[0], randomArray(rng, array.Int8, w.Constants[0].Shape...))
		}
	}
}

// TestFillLaysOutBlocks: codes of a byte or half of one, as either form of a product by blocks has them.
func TestFillLaysOutBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for _, codes := range []string{"u8[64,21]; [t1 r0 i1]", "u8[32,21]; (select (eq (floormod r0 2) 0) (and [t1 (floordiv r0 2) i1] 15:u8) (shr [t1 (floordiv r0 2) i1] 4:u8))"} {
		shape, code, _ := strings.Cut(codes, "; ")
		for _, form := range []schedule.BlockForm{schedule.BlockFloats, schedule.BlockIntegers} {
			w, err := expr.Parse("tilth-workload 1\ninput t0 f32[7,64]\nconstant t1 " + shape + "\nconstant t2 f32[2,21]\n" +
				"sum t3 f32[7,21] over 64 = (mul [t0 i0 r0] (mul (cast f32 " + code + ") [t2 (floordiv r0 32) i1]))\noutput t3\n")
			if err != nil {
				t.Fatal(err)
			}
			s := schedule.New(w)
			if _, err := s.Blockwise(0, form); err != nil {
				t.Fatal(err)
			}
			if err := s.Pack(0, []schedule.PackDim{{Dim: 1, Factor: 8}, {Dim: 0}, {Dim: 1, Factor: 8, Inner: true}}); err != nil {
				t.Fatal(err)
			}
			f, err := lower.Schedule(s)
			if err != nil {
				t.Fatal(err)
			}
			checkFill(t, f.Prepared[0], randomIntegers(rng, w.Constants[0].Shape...))
		}
	}
}

// randomIntegers returns bytes of any value.
func randomIntegers(rng *rand.Rand, shape ...int64) *array.Array {
	a := array.New(array.Uint8, shape...)
	for k := range a.Len() {
		a.SetInt(k, int64(rng.IntN(256)))
	}
	return a
}

// TestFillSumsStrassensRightOperand: bit by bit as the expressions say, whichever dimension comes first, with odd
// extents.
func TestFillSumsStrassensRightOperand(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, right := range []string{"f32[9,21]; r0 i1", "f32[21,9]; i1 r0"} {
		shape, index, _ := strings.Cut(right, "; ")
		w, err := expr.Parse("tilth-workload 1\ninput t0 f32[7,9]\nconstant t1 " + shape +
			"\nsum t2 f32[7,21] over 9 = (mul [t0 i0 r0] [t1 " + index + "])\noutput t2\n")
		if err != nil {
			t.Fatal(err)
		}
		s := schedule.New(w)
		if _, err := s.Strassen(0, 4, schedule.Compiled); err != nil {
			t.Fatal(err)
		}
		f, err := lower.Schedule(s)
		if err != nil {
			t.Fatal(err)
		}
		checkFill(t, f.Prepared[0], randomArray(rng, array.Float32, w.Constants[0].Shape...))
	}
}
