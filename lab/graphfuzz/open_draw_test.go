package graphfuzz

import (
	"math/rand/v2"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/frontend"
)

// openExtents lists the extents of inputs that may be open, with their usual bounds.
var openExtents = []extent.Symbol{
	{Name: "batch", Min: 1, Max: 3},
	{Name: "height", Min: 3, Max: 9},
	{Name: "width", Min: 3, Max: 8},
	{Name: "sequence", Min: 1, Max: 7},
	{Name: "channels", Min: 1, Max: 5},
	{Name: "past", Min: 0, Max: 6},
}

// GenerateOpen draws a model with one to four open extents. It depends only on the seed.
func GenerateOpen(seed uint64) *Case {
	g := newGenerator("open", seed, 8)
	for _, k := range g.rng.Perm(len(openExtents))[:1+g.rng.IntN(4)] {
		s := openExtents[k]
		if s.Name != "past" {
			s.Min += int64(g.rng.IntN(2))
		}
		s.Max, s.Step = s.Max+int64(g.rng.IntN(4)), 1
		if g.rng.IntN(8) == 0 { // more than a vector
			s.Max += int64(g.rng.IntN(40))
		}
		g.extents[s.Name] = g.symbols.Add(&s)
	}
	if seed%8 == 7 {
		return g.maskedCase(seed)
	}
	for _, kind := range g.rng.Perm(4)[:1+g.rng.IntN(3)] {
		[]func(){g.anyInput, g.image, g.sequence, g.tokens}[kind]()
	}
	g.cover()
	return g.complete(seed)
}

// cover adds inputs with the open extents that none has.
func (g *generator) cover() {
	for _, s := range g.symbols.Symbols() {
		if e := g.extents[s.Name]; !slices.ContainsFunc(g.tensors, func(t tensor) bool { return slices.Contains(t.dims.Extents(), e) }) {
			g.add(array.Float32, e, extent.Of(1+int64(g.rng.IntN(6))))
		}
	}
}

// extent returns an open extent, or a constant if it is not open in this graph.
func (g *generator) extent(name string, most int) extent.Extent {
	if e, ok := g.extents[name]; ok {
		return e
	}
	return extent.Of(1 + int64(g.rng.IntN(most)))
}

// rows returns an extent that is sometimes open in graphs with open ones.
func (g *generator) rows(most int) extent.Extent {
	if len(g.extents) > 0 && g.rng.IntN(2) == 0 {
		if e := g.extents[pick(g, g.symbols.Symbols()).Name]; e.Min() > 0 {
			return e
		}
	}
	return extent.Of(1 + int64(g.rng.IntN(most)))
}

// side returns the extent of an image of which windows fit in.
func (g *generator) side() extent.Extent {
	if e := g.rows(8); e.Min() > 2 {
		return e
	}
	return extent.Of(3 + int64(g.rng.IntN(8)))
}

// add adds an input.
func (g *generator) add(d array.DType, shape ...extent.Extent) tensor {
	t := g.valueOf(d, extent.ShapeOf(shape...))
	g.graph.Inputs = append(g.graph.Inputs, info(t))
	g.inputs[t.name] = g.random(d, t.shape)
	g.tensors = append(g.tensors, t)
	return t
}

// anyInput adds an input with any open extents.
func (g *generator) anyInput() {
	shape := make([]extent.Extent, g.rng.IntN(5))
	for k := range shape {
		shape[k] = extent.Of(1 + int64(g.rng.IntN(6)))
		if g.rng.IntN(2) == 0 {
			shape[k] = g.extents[pick(g, g.symbols.Symbols()).Name]
		}
	}
	for k := 0; !fits(extent.ShapeOf(shape...).Max()); k++ {
		shape[k] = extent.Of(1)
	}
	g.add(pick(g, inputTypes), shape...)
}

// image adds one or two images, which may have different numbers of channels.
func (g *generator) image() {
	for range 1 + g.rng.IntN(2) {
		channels := extent.Of(1 + int64(g.rng.IntN(8)))
		if g.rng.IntN(4) == 0 {
			channels = g.extent("channels", 8)
		}
		g.add(array.Float32, g.extent("batch", 2), channels, g.extent("height", 9), g.extent("width", 9))
	}
}

// sequence adds positions with channels, and maybe earlier ones that they follow.
func (g *generator) sequence() {
	width := extent.Of(pick(g, []int64{1, 2, 4, 6, 8}))
	x := g.add(array.Float32, g.extent("batch", 2), g.extent("sequence", 7), width)
	if e, ok := g.extents["past"]; ok {
		past := g.add(array.Float32, x.dims.At(0), e, width)
		g.nodeOf("Concat", x.dtype, x.dims.With(1, e.Plus(x.dims.At(1))), []string{past.name, x.name}, integer("axis", 1))
	}
}

// tokens adds positions of indices and their embedding.
func (g *generator) tokens() {
	x := g.add(array.Int64, g.extent("batch", 2), g.extent("sequence", 7))
	table := g.constant(g.random(array.Float32, []int64{8, pick(g, []int64{2, 4, 6})}))
	for i, a := int64(0), g.inputs[x.name]; i < a.Len(); i++ {
		a.SetInt(i, int64(g.rng.IntN(8)))
	}
	width := g.graph.Initializers[len(g.graph.Initializers)-1].Value.Shape[1]
	g.nodeOf("Gather", array.Float32, extent.Concat(x.dims, extent.Fixed(width)), []string{table, x.name})
}

// Bounds returns the bounds of the open extents. Some graphs have kernels of their own for small ones.
func (c *Case) Bounds() map[string]frontend.Bounds {
	open := map[string]frontend.Bounds{}
	for _, s := range c.Symbols {
		b := frontend.Bounds{Min: s.Min, Max: s.Max}
		if most := (s.Min + s.Max) / 2; c.Seed%3 == 0 && most > 0 {
			b.Caps = []int64{most}
		}
		open[s.Name] = b
	}
	return open
}

// At returns the case with inputs of the given extents, and the options that fix them.
func (c *Case) At(sizes map[string]int64) (fixed *Case, options frontend.Options) {
	one := *c
	one.Inputs = map[string]*array.Array{}
	for _, in := range c.Model.Graph.Inputs {
		a := c.Inputs[in.Name]
		for axis, d := range in.Shape {
			if d.Value < 0 {
				a = a.Head(axis, sizes[d.Param])
			}
		}
		one.Inputs[in.Name] = a
	}
	options.Shapes = map[string][]int64{}
	for name, n := range sizes {
		options.Shapes[name] = []int64{n}
	}
	return &one, options
}

// Sizes returns the least, the most, and other extents.
func (c *Case) Sizes() []map[string]int64 {
	rng := rand.New(rand.NewPCG(c.Seed, 9))
	least, most, other := map[string]int64{}, map[string]int64{}, map[string]int64{}
	for _, s := range c.Symbols {
		least[s.Name], most[s.Name], other[s.Name] = s.Min, s.Max, s.Min+rng.Int64N(s.Max-s.Min+1)
	}
	return []map[string]int64{most, least, other}
}
