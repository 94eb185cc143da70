package sketch

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/gpu/cost"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// patches is the sketch of windowed reductions that keep channels separate, such as depthwise convolution and
// pooling. Neighbouring threads have neighbouring channels. Each thread computes some adjacent results of a channel
// and reads all the data that they need, the patch, into registers once.
type patches struct {
	unit sketch.Unit
	gpu  *target.GPU
	// extents holds those of the results. down and along are the axes that windows move along, or -1; channel is the
	// axis of the channels.
	extents              []int64
	down, along, channel int
	// window is the load with overlapping elements, feed the stage that computes it for this reduction alone, or -1.
	window *expr.Load
	axes   []*expr.Var
	reduce []*expr.Var
	feed   int
	// terms is the number of terms per window, bytes the size of an element.
	terms, bytes int64
}

// windowsParameters are the sketch's parameters.
type windowsParameters struct {
	// threads is the number of threads per block, tall and wide the results of each along the two axes.
	threads, tall, wide int64
}

const (
	// maxTerms bounds the windows, maxCode the unrolled terms, and windowsMaxRegisters the registers of a thread.
	maxTerms            = 81
	maxCode             = 600
	windowsMaxRegisters = 160
)

// NewWindows returns the schedules of a unit with a reduction g, or nil if it is not over windows of channels.
func NewWindows(s *schedule.Schedule, g *schedule.Stage, u sketch.Unit, gpu *target.GPU) searchspace.Family {
	p := &patches{unit: u, gpu: gpu, extents: g.Tensor.Shape, down: -1, along: -1, channel: sketch.LastLong(g.Tensor.Shape), feed: -1, axes: g.Axes, reduce: g.Reduce,
		terms: 1, bytes: g.Tensor.DType.Bytes()}
	if g.Combiner == expr.None || !p.isContiguous(g) || !p.findWindow(s, g) {
		return nil
	}
	for _, r := range g.Reduce {
		p.terms *= r.Extent
	}
	if p.terms > maxTerms {
		return nil
	}
	type q = windowsParameters
	extent := func(axis int) int64 {
		if axis < 0 {
			return 1
		}
		return p.extents[axis]
	}
	return &searchspace.Sketch[windowsParameters]{
		Open: searchspace.WithChoices([]searchspace.Parameter[q]{
			sketch.Knob("threads", func(p *q) *int64 { return &p.threads }, 32, 64, 128, 256),
			sketch.Unrolling(sketch.Knob("tall", func(p *q) *int64 { return &p.tall }, sketch.AtMost(extent(p.down), 1, 2, 4)...)),
			sketch.Unrolling(sketch.Knob("wide", func(p *q) *int64 { return &p.wide }, sketch.AtMost(extent(p.along), 1, 2, 4, 8)...)),
		}),
		Fixed:    windowsParameters{threads: 32, tall: 1, wide: 1},
		Variants: []searchspace.Variant[windowsParameters]{{By: searchspace.Direct, Structure: p}},
	}
}

// isContiguous reports whether all data is contiguous or invariant along the channels.
func (p *patches) isContiguous(g *schedule.Stage) bool {
	return p.channel >= 0 && sketch.MovesByOne(g, g.Axes[p.channel]) && !slices.ContainsFunc(expr.Loads(g.Body), func(l *expr.Load) bool {
		return !expr.Uses(l, g.Axes[p.channel])
	})
}

// findWindow finds the load whose elements several results share, and the axes that move it. The reduction may only
// move it within a window.
func (p *patches) findWindow(s *schedule.Schedule, g *schedule.Stage) bool {
	for _, l := range expr.Loads(g.Body) {
		moved := map[*expr.Var]bool{}
		for _, x := range l.Index {
			if !sketch.UsesAny(x, g.Reduce) || !sketch.UsesAny(x, g.Axes) {
				continue
			}
			for k, v := range g.Axes {
				if v.Extent > 1 && expr.Uses(x, v) && !p.takes(k) {
					return false
				}
			}
			for _, r := range g.Reduce {
				moved[r] = moved[r] || expr.Uses(x, r)
			}
		}
		if len(moved) == 0 {
			continue
		}
		if p.window != nil || slices.ContainsFunc(g.Reduce, func(r *expr.Var) bool { return r.Extent > 1 && !moved[r] }) {
			return false
		}
		p.window = l
	}
	if p.window == nil || p.along == p.channel || p.down == p.channel {
		return false
	}
	if f := s.Producer(p.window.Tensor); f != nil && slices.Contains(p.unit.Feeds, f.ID) {
		p.feed = f.ID
	}
	return true
}

// takes records an axis that windows move along. It returns false for a third one.
func (p *patches) takes(axis int) bool {
	switch {
	case axis == p.along || axis == p.down:
	case p.along < 0:
		p.along = axis
	case p.down < 0:
		p.down = axis
	default:
		return false
	}
	if p.down > p.along {
		p.down, p.along = p.along, p.down
	}
	return true
}

// elements returns the number of elements of a patch.
func (p *patches) elements(q windowsParameters) int64 {
	n := int64(1)
	for _, x := range p.window.Index {
		extent := int64(1)
		for _, t := range expr.Linearize(x).Terms {
			v, ok := t.Atom.(*expr.Var)
			if !ok {
				return windowsMaxRegisters + 1
			}
			extent += max(t.Coef, -t.Coef) * (p.within(v, q) - 1)
		}
		n *= extent
	}
	return n
}

// within returns how many values a variable takes in a patch.
func (p *patches) within(v *expr.Var, q windowsParameters) int64 {
	switch k := slices.Index(p.axes, v); {
	case k >= 0 && k == p.down:
		return q.tall
	case k >= 0 && k == p.along:
		return q.wide
	case slices.Contains(p.reduce, v):
		return v.Extent
	}
	return 1
}

// Legal implements searchspace.Structure.
func (p *patches) Legal(q windowsParameters) error {
	results := q.tall * q.wide
	switch registers := (p.elements(q) + results*int64(1+len(p.unit.Also)) + p.terms) * max(1, p.bytes/4); {
	case results > 1 && results*p.terms > maxCode:
		return fmt.Errorf("space: %d results of windows of %d terms are too much code", results, p.terms)
	case results > 1 && registers > windowsMaxRegisters:
		return fmt.Errorf("space: a thread keeps %d registers, more than it has", registers)
	}
	return nil
}

// Cost implements searchspace.Structure. It adds the operations and loads of threads, memory, and the latency of each
// wave of blocks.
func (p *patches) Cost(q windowsParameters) float64 {
	const latency, start = 900.0, 40.0
	patch, results := float64(p.elements(q)), float64(q.tall*q.wide)
	work := results*float64(p.terms) + 4*patch + float64(p.terms) + 6*results
	all := int64(1)
	for k, e := range p.extents {
		switch k {
		case p.down:
			e = sketch.CeilDiv(e, q.tall)
		case p.along:
			e = sketch.CeilDiv(e, q.wide)
		}
		all *= e
	}
	blocks := sketch.CeilDiv(all, q.threads)
	registers := 32 + int64(patch+results)*max(1, p.bytes/4)
	resident := max(1, min(int64(p.gpu.MultiprocessorThreads)/q.threads, int64(p.gpu.MultiprocessorRegisters)/(registers*q.threads), 32))
	together, waves := cost.Occupy(p.gpu, blocks, resident)
	// Patches overlap: data that neighbours have read comes from a cache, four times as fast.
	memory := float64(q.threads*p.bytes) * (2*results + patch/4) / cost.GlobalBytes
	perBlock := max(work*float64(q.threads)/cost.Lanes, memory)
	return waves*(perBlock*together+latency) + start*float64(blocks)/float64(p.gpu.Multiprocessors)
}
