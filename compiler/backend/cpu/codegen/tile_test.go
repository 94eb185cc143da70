package codegen

import (
	_ "embed"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"pgregory.net/rapid"
)

// tileModel is C that models tile instructions, for machines without them.
//
//go:embed testdata/tiles.h
var tileModel string

// tileModes compile kernels for processors with tiles. The model replaces their instructions.
var tileModes = []mode{
	{name: "tiles", target: "granite-rapids", compiler: "clang-19", flags: []string{"-O1"}, model: tileModel},
	{name: "sanitized", target: "granite-rapids", compiler: "clang-19", flags: []string{"-O1", "-g1", "-fsanitize=address,undefined",
		"-fno-sanitize-recover=undefined", "-fno-sanitize=alignment"}, model: tileModel},
}

// inTiles returns the part of a space that multiplies tiles. Without one it returns the whole space and false.
func inTiles(s *searchspace.Space) (part *searchspace.Space, ok bool) {
	for _, a := range s.Algorithms() {
		if strings.HasPrefix(a.Name, "AMX") {
			return s.Of(a), true
		}
	}
	return s, false
}

// drawTilePoint draws a product and, if possible, a point of its space that multiplies tiles.
func drawTilePoint(t *rapid.T, d *target.Target) kerneltest.Case {
	w := kerneltest.DrawTiles(t).Merge()
	s, _ := inTiles(sketch.New(w, d, schedule.Strict))
	p := s.Default()
	if q, ok := s.Random(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "point"), 0))); ok && rapid.IntRange(0, 3).Draw(t, "random") > 0 {
		p = q
	}
	return kerneltest.Case{Workload: w, Schedule: applied(t, s, p), Workers: rapid.IntRange(1, 2).Draw(t, "workers"), Args: kerneltest.Fill(w, rapid.Uint64Range(0, 99).Draw(t, "seed"))}
}

// TestProductsOfTilesAreRight covers all types, shapes and points of the space.
func TestProductsOfTilesAreRight(t *testing.T) {
	checkDrawn(t, quick(tileModes, "tiles"), 8, func(t *rapid.T, d *target.Target) kerneltest.Case { return drawTilePoint(t, d) })
}

// TestPointsOfTilesMultiplyTiles checks that points with the algorithm use the instructions rather than a fallback.
func TestPointsOfTilesMultiplyTiles(t *testing.T) {
	d := tileModes[0].description(t)
	rapid.Check(t, func(t *rapid.T) {
		c := drawTilePoint(t, d)
		if _, ok := inTiles(sketch.New(c.Workload, d, schedule.Strict)); !ok {
			t.Skip("it has no tiles")
		}
		source, err := Module(c.Workload, []backend.Kernel{{ID: "k", Schedule: c.Schedule}}, d)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(source, "tilth_tile_product(") {
			t.Fatalf("no tiles are multiplied\n%s", c.Text())
		}
	})
}

// TestProductsWithoutConstantsAreInTiles covers batched products with a right operand in rows or columns, which the
// kernel copies.
func TestProductsWithoutConstantsAreInTiles(t *testing.T) {
	for _, right := range []string{"bf16[2,64,128]\x00i0 r0 i2", "bf16[2,128,64]\x00i0 i2 r0", "bf16[2,128,40]\x00i0 i2 r0"} {
		shape, index, _ := strings.Cut(right, "\x00")
		terms := "64"
		if strings.HasSuffix(shape, "40]") {
			terms = "40"
		}
		w, err := expr.Parse("tilth-workload 1\ninput t0 bf16[2,128," + terms + "]\ninput t1 " + shape +
			"\nsum t2 f32[2,128,128] over " + terms + " = (mul (cast f32 [t0 i0 i1 r0]) (cast f32 [t1 " + index + "]))\noutput t2\n")
		if err != nil {
			t.Fatal(err)
		}
		s := sketch.New(w, mode{target: "sapphire-rapids"}.description(t), schedule.Strict)
		if by := s.Algorithm(s.Default()); by.Name != "AMX BF16" {
			t.Errorf("%s: the default is %s", shape, by.Name)
		}
		c := kerneltest.Case{Workload: w, Workers: 2, Args: kerneltest.Fill(w, 1)}
		if c.Schedule, err = s.Apply(s.Default()); err != nil {
			t.Fatal(err)
		}
		checkCases(t, t, tileModes[0], []kerneltest.Case{c})
	}
}

// drawTiledAttention draws attention with any number of rows, keys and columns, and a point of its space in tiles.
func drawTiledAttention(t *rapid.T, d *target.Target) kerneltest.Case {
	w := kerneltest.DrawTiledAttention(t).Merge()
	s, ok := inTiles(sketch.New(w, d, schedule.Fast))
	if !ok {
		t.Fatalf("it is not computed in tiles\n%s", w.Text())
	}
	p, found := s.Random(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "point"), 0)))
	if !found {
		p = s.Default()
	}
	return kerneltest.Case{Workload: w, Schedule: applied(t, s, p), Workers: rapid.IntRange(1, 2).Draw(t, "workers"), Args: kerneltest.Fill(w, rapid.Uint64Range(0, 99).Draw(t, "seed"))}
}

// TestAttentionInTilesIsRight checks that both products use tiles, with the softmax result rounded.
func TestAttentionInTilesIsRight(t *testing.T) {
	for _, m := range quick(tileModes, "tiles") {
		t.Run(m.name, func(t *testing.T) {
			d := m.description(t)
			draw := rapid.Custom(func(t *rapid.T) kerneltest.Case { return drawTiledAttention(t, d) })
			rapid.Check(t, func(rt *rapid.T) {
				cases := kerneltest.Batch(rt, draw, 4)
				checkCases(t, rt, m, cases)
				text, _ := m.source(t, cases)
				if n := strings.Count(text, "tilth_tile_product(tdpbf16ps"); n < 2*len(cases) {
					rt.Fatalf("%d products of tiles in %d attentions\n%s", n, len(cases), cases[0].Text())
				}
			})
		})
	}
}
