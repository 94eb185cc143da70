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

// flat is the sketch of results that share no data: each thread computes its own. All axes are fused and divided into
// blocks of threads, each with a few adjacent results.
type flat struct {
	unit sketch.Unit
	gpu  *target.GPU
	axes int
	// results is the number of results, work the operations and loads of each.
	results int64
	work    float64
	// row is the extent of the last axis, or 1.
	row int64
}

// elementwiseParameters are the sketch's parameters.
type elementwiseParameters struct {
	// threads is the number of threads per block, items the number of results per thread.
	threads, items int64
}

// NewElementwise returns the schedules of a unit: a map, or a reduction with one thread per result.
func NewElementwise(s *schedule.Schedule, u sketch.Unit, g *target.GPU) searchspace.Family {
	out := s.Stages[u.Out]
	f := &flat{unit: u, gpu: g, axes: len(out.Axes), results: sketch.Product(out.Tensor.Shape), row: 1, work: work(s, u)}
	if f.axes > 0 {
		f.row = out.Tensor.Shape[f.axes-1]
	}
	open := []searchspace.Parameter[elementwiseParameters]{
		sketch.Knob("threads", func(p *elementwiseParameters) *int64 { return &p.threads }, sketch.AtMost(sketch.CeilDiv(f.results, 32)*32, 32, 64, 128, 256, 512)...),
		sketch.Knob("items", func(p *elementwiseParameters) *int64 { return &p.items }, sketch.AtMost(f.results, 1, 2, 4, 8)...),
	}
	return &searchspace.Sketch[elementwiseParameters]{Open: searchspace.WithChoices(open), Fixed: elementwiseParameters{threads: 32, items: 1},
		Variants: []searchspace.Variant[elementwiseParameters]{{By: searchspace.Direct, Structure: f}}}
}

// work returns the approximate cycles of a result in a thread.
func work(s *schedule.Schedule, u sketch.Unit) float64 {
	total := float64(1 + len(expr.Loads(s.Stages[u.Out].Body)))
	for _, g := range s.Stages {
		if g.Combiner == expr.None || g.Inlined {
			continue
		}
		if g.ID == u.Acc || g.ID == u.Out {
			steps := 1.0
			for _, r := range g.Reduce {
				steps *= float64(r.Extent)
			}
			total += steps * float64(1+len(expr.Loads(g.Body)))
		}
	}
	return total
}

// Legal implements searchspace.Structure. Stages computed for the results of a thread cover whole rows if the results
// lie in two, so that another thread would compute them as well.
func (f *flat) Legal(p elementwiseParameters) error {
	if p.items > 1 && f.row%p.items != 0 && (f.unit.Acc >= 0 || len(f.unit.Also) > 0) {
		return fmt.Errorf("space: %d results of a thread may span two rows", p.items)
	}
	return nil
}

// atOnce is the fraction of a thread's work with vector loads and stores. Four elements are best: with eight, the
// halves of different threads interleave.
var atOnce = map[int64]float64{2: 0.9, 4: 0.8, 8: 0.85}

// Cost implements searchspace.Structure. A multiprocessor issues one warp instruction in each of its four parts at a
// time, and blocks beyond its capacity follow one another.
func (f *flat) Cost(p elementwiseParameters) float64 {
	blocks := sketch.CeilDiv(f.results, p.threads*p.items)
	resident := max(1, int64(f.gpu.MultiprocessorThreads)/p.threads)
	together, waves := cost.Occupy(f.gpu, blocks, resident)
	const latency = 400
	perBlock := f.work * float64(p.items*p.threads) / cost.Lanes
	if share, ok := atOnce[p.items]; ok && f.unit.Acc < 0 && f.row%p.items == 0 {
		perBlock *= share
	}
	return waves*(perBlock*together+latency) + float64(blocks)/float64(f.gpu.Multiprocessors)
}

// Apply implements searchspace.Structure.
func (f *flat) Apply(s *schedule.Schedule, p elementwiseParameters) (err error) {
	defer sketch.Catch(&err)
	b := &sketch.Builder{S: s}
	Results(b, f.unit, f.axes, p.threads, p.items)
	for _, feed := range f.unit.Feeds {
		Alone(b, feed)
	}
	return nil
}

// Results makes each thread compute a few results of a unit with that many axes, and the sums that they need.
func Results(b *sketch.Builder, u sketch.Unit, axes int, threads, items int64) {
	thread := Spread(b, u.Out, axes, threads, items)
	within := slices.Clone(u.Also)
	if u.Acc >= 0 {
		within = append([]int{u.Acc}, within...)
	}
	single := sketch.Product(b.S.Stages[u.Out].Tensor.Shape) == 1
	for _, id := range slices.Backward(within) {
		b.ComputeAt(id, u.Out, thread)
		if single { // no loop over threads is left to express this
			b.Do(b.S.SetScope(id, schedule.Registers))
		}
	}
}

// Alone computes a stage in a launch of its own.
func Alone(b *sketch.Builder, stage int) { Spread(b, stage, len(b.S.Stages[stage].Axes), 256, 1) }

// Spread fuses all axes of a stage, divides them into blocks of threads with a few results each, and returns the loop
// over threads.
func Spread(b *sketch.Builder, stage, axes int, threads, items int64) (thread int) {
	rest := b.FuseAxes(stage, axes)
	if items > 1 {
		var own int
		rest, own = b.Split(stage, rest, items, schedule.Peel)
		b.Mark(b.S.Unroll, stage, own)
	}
	block, thread := b.Split(stage, rest, threads, schedule.Peel)
	Bind(b, stage, block, thread)
	return thread
}

// Bind binds one loop to blocks and one to threads.
func Bind(b *sketch.Builder, stage, block, thread int) {
	b.Do(b.S.Bind(stage, block, schedule.BlockLevel))
	b.Do(b.S.Bind(stage, thread, schedule.ThreadLevel))
}
