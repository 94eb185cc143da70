package pass

import (
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine"
)

// table lists all passes: those for processors, and then those for GPUs.
var table = []entry{
	{name: "lookup", run: with(func(f *ir.Func, c *Config) *ir.Func { return Lookup(f, c.LookUp) })},
	{name: "quotients", run: total(Quotients)},
	{name: "partition", after: rules{"quotients": "conditions on quotients would stay in inner loops"}, run: total(Partition)},
	{name: "borders", after: rules{"partition": "conditions that it decides would stay"}, run: total(Borders)},
	{name: "scopes", essential: "processors lack the memories of GPUs", run: total(Scopes)},
	{name: "unroll", essential: "vectors would be longer than registers", after: rules{
		"lookup":    "each copy of a function would be tabulated",
		"partition": "loops would be gone before they are split",
		"borders":   "loops over positions would be gone",
	}, run: func(f *ir.Func, c *Config) (*ir.Func, error) { return Unroll(f, c.Lanes) }},
	{name: "padding", after: rules{"unroll": "constant positions show which terms are zero"}, run: total(Padding)},
	{name: "fold", after: rules{"unroll": "neighbours are copies of a body"},
		run: with(func(f *ir.Func, c *Config) *ir.Func { return Fold(f, c.Lanes) })},
	{name: "tiles", after: rules{"scopes": "sums are in scratch memory", "unroll": "unroll cannot copy instructions"},
		run: with(func(f *ir.Func, c *Config) *ir.Func { return Tiles(f, c.HasTiles) })},
	{name: "promote", after: rules{"scopes": "scopes moves all buffers to memory", "unroll": "registers have constant indices"},
		run: total(Promote)},
	{name: "storage", essential: "buffers would have no place", after: rules{
		"tiles":   "tiles only replaces buffers without a place",
		"promote": "registers take no memory",
	}, run: with(func(f *ir.Func, c *Config) *ir.Func { return Storage(f, c.Room) })},
	{name: "outline", essential: "bodies of parallel loops would lack variables", after: rules{"storage": "bodies capture buffers of the workspace alone"},
		run: total(Outline)},
	{name: "epilogues", after: rules{"promote": "a tile's sums are in registers"},
		run: with(func(f *ir.Func, c *Config) *ir.Func { return PrefetchEpilogues(f, c.Caches) })},
	{name: "transpose", after: rules{"promote": "copies to registers need no transposition"}, run: total(Transpose)},
	{name: "dot", after: rules{"promote": "operands are in memory", "outline": "outline would capture the lanes of operands"},
		run: with(func(f *ir.Func, _ *Config) *ir.Func { return Dot(f, machine.HasDot) })},
	{name: "squares", after: rules{"promote": "sums are in registers", "dot": "squares are pairs of dot products"},
		run: with(func(f *ir.Func, _ *Config) *ir.Func { return Squares(f, machine.HasSquares) })},
	{name: "across", after: rules{"unroll": "vectors have their length", "outline": "outline would capture the lanes of sums"},
		run: with(func(f *ir.Func, _ *Config) *ir.Func { return Across(f, cprint.Computes) })},
	{name: "lanewise", essential: "operators without a vector form cannot be printed", after: rules{
		"fold":      "neighbours would be gathered",
		"transpose": "columns would be gathered",
		"dot":       "operands would be gathered",
		"across":    "lanes would be added one by one",
	}, run: with(func(f *ir.Func, c *Config) *ir.Func { return Lanewise(f, c.Forms) })},
	{name: "stream", after: rules{"unroll": "only whole vectors are streamed"},
		run: with(func(f *ir.Func, c *Config) *ir.Func { return Stream(f, c.Lanes) })},
	{name: "cse", after: rules{
		"padding":   "constants would be hidden in registers",
		"epilogues": "loads would be apart from their stores",
		"lanewise":  "vector loops must hold one statement each",
	}, run: total(CSE)},
	{name: "prefetch", after: rules{"cse": "a value is fetched where it gets its register"},
		run: with(func(f *ir.Func, c *Config) *ir.Func { return Prefetch(f, c.Caches.LineBytes) })},
	{name: "separate", after: rules{"cse": "loads are separate statements", "prefetch": "prefetches keep steps apart as well"},
		run: with(func(f *ir.Func, c *Config) *ir.Func { return Separate(f, c.Registers) })},

	{name: "threads", essential: "kernels would not consist of launches", run: func(f *ir.Func, _ *Config) (*ir.Func, error) { return Threads(f) }},
	{name: "shuffle", essential: "marked loops cannot be printed", after: rules{"threads": "only launches have threads"},
		run: with(func(f *ir.Func, c *Config) *ir.Func { return Shuffle(f, c.HasWarps) })},
	{name: "wide", essential: "threads have no vectors", after: rules{"threads": "only launches have shared memory"}, run: total(Wide)},
	{name: "pipeline", essential: "copies of boxes would signal no mbarrier", after: rules{"wide": "asynchronous copies are wide"},
		run: total(Pipeline)},
	{name: "begin", after: rules{"pipeline": "pipelines count the copies in flight"}, run: total(PipelineBegin)},
	{name: "spread", essential: "buffers would belong to no thread", after: rules{"begin": "only buffers that schedules share are filled early"},
		run: func(f *ir.Func, _ *Config) (*ir.Func, error) { return Spread(f) }},
	{name: "tensorize", essential: "loops over matrices cannot be printed", after: rules{"spread": "threads own the parts of sums"},
		run: total(Tensorize)},
	{name: "products", essential: "threads would read unfinished sums", after: rules{"tensorize": "it makes the products"},
		run: total(Products)},
	{name: "sink", after: rules{"pipeline": "pipelined loops stay around those over threads"}, run: total(Sink)},
	{name: "guard", run: total(Guard)},
	{name: "preload", after: rules{"sink": "loads would stand between loops", "guard": "conditions would hide nests"}, run: total(Preload)},
	{name: "barrier", essential: "threads would race", after: rules{
		"shuffle":  "exchanged values need no barrier",
		"products": "sums are final after a wait",
		"sink":     "sunk loops need no barrier",
	}, run: total(Barrier)},
	{name: "limits", essential: "drivers refuse large kernels without a reason", after: rules{
		"spread":  "shared memory and registers are known",
		"preload": "it takes registers",
	}, run: func(f *ir.Func, c *Config) (*ir.Func, error) { return f, c.CheckLimits(f) }},
}

// total adapts a pass that cannot fail and needs no Config.
func total(run func(*ir.Func) *ir.Func) func(*ir.Func, *Config) (*ir.Func, error) {
	return func(f *ir.Func, _ *Config) (*ir.Func, error) { return run(f), nil }
}

// with adapts a pass that cannot fail.
func with(run func(*ir.Func, *Config) *ir.Func) func(*ir.Func, *Config) (*ir.Func, error) {
	return func(f *ir.Func, c *Config) (*ir.Func, error) { return run(f, c), nil }
}
