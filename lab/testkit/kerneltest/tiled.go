package kerneltest

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"pgregory.net/rapid"
)

// tiled is the trace of GPU blocks that compute a map of sums in tiles, with some terms of the sums per step. The
// last stage has number %[1]d.
const tiled = `split %[1]d 0 %[2]d %[3]d
split %[1]d 1 %[4]d %[3]d
reorder %[1]d 2 4 3 5
fuse %[1]d 2 4
bind %[1]d 6 0
compute-at 0 %[1]d 6
split 0 2 %[5]d 0
persist %[1]d %[6]d
raster %[1]d %[7]d
streamk 0 %[8]d
`

// threaded is the trace of a product with an operand in shared memory and sums in registers.
const threaded = `cache-write 0
split 0 0 4 %[1]d
split 0 3 2 0
split 0 1 8 %[1]d
split 0 7 4 0
reorder 0 2 6 4 9 5 8
fuse 0 2 6
fuse 0 4 9
bind 0 10 0
bind 0 11 1
compute-at 1 0 10
scope 1 2
split 1 2 %[2]d 0
split 1 0 2 0
split 1 1 4 0
reorder 1 3 5 8 4 6 7
fuse 1 5 8
bind 1 9 1
cache-read 1 0 0 1
compute-at 2 1 3
scope 2 1
fuse 2 0 1
split 2 2 8 0
bind 2 4 1
persist 0 %[3]d
raster 0 %[4]d
streamk 1 %[5]d
`

// DrawTiled draws sums for persistent blocks with a randomly changed trace: lines are removed, duplicated or changed,
// and lines about walks are added. Lowering may refuse it.
func DrawTiled(t *rapid.T) Case {
	g := &dag{t: t}
	step := g.int("step", 1, 4)
	w := g.sums(step)
	tail := rapid.SampledFrom([]schedule.Tail{schedule.Peel, schedule.Guard}).Draw(t, "tail")
	blocks, band, rounds := g.int("blocks", 2, 9), g.int("band", 1, 4), g.int("rounds", 1, 3)
	var trace string
	if len(w.Stages) == 1 {
		trace = fmt.Sprintf(threaded, tail, step, blocks, band, rounds)
	} else {
		tall, wide := g.int("tall", 1, 8), g.int("wide", 1, 8)
		trace = fmt.Sprintf(tiled, len(w.Stages)-1, tall, tail, wide, step, blocks, band, rounds)
	}
	return Case{Workload: w, Schedule: g.changed(w, strings.Split(strings.TrimSpace(trace), "\n")), Workers: 1, Args: Fill(w, 1)}
}

// sums draws a matrix product with a multiple of step terms, zero-padded or not, alone, before one or two maps, or
// beside another one.
func (g *dag) sums(step int64) *expr.Workload {
	m, n, k := g.int("rows", 1, 24), g.int("columns", 1, 24), step*g.int("steps", 1, 6)
	around := g.int("around", 0, min(2, (k-1)/2))
	k -= 2 * around
	x, y := g.source(array.Float32, false, m, k), g.source(array.Float32, false, k, n)
	product := func(name string) *expr.Tensor {
		return expr.ReduceOver(name, expr.Sum, []int64{m, n}, []int64{k + 2*around}, func(i, r []expr.Expr) expr.Expr {
			at := expr.SubE(r[0], expr.I(around))
			return expr.Sel(expr.InRange(at, 0, k), expr.MulE(x.At(i[0], at), y.At(at, i[1])), expr.Zero(array.Float32))
		})
	}
	twice := func(name string, of, and *expr.Tensor) *expr.Tensor {
		return expr.Compute(name, of.Shape, func(i []expr.Expr) expr.Expr { return expr.AddE(of.At(i...), and.At(i...)) })
	}
	outs := []*expr.Tensor{product("product")}
	switch rapid.IntRange(0, 3).Draw(g.t, "stages") {
	case 0:
		outs[0] = twice("out", outs[0], outs[0])
	case 1:
		outs[0] = twice("before", outs[0], outs[0])
		outs = append(outs, twice("out", outs[0], outs[0]))
	case 2:
		outs[0] = twice("out", outs[0], product("other"))
	}
	return workloadOf(g.t, outs...)
}

// changed returns the schedule of those lines of a changed trace that can be applied.
func (g *dag) changed(w *expr.Workload, lines []string) *schedule.Schedule {
	const header = "tilth-trace 1\n"
	for range g.int("changes", 0, 3) {
		lines = g.change(lines)
	}
	trace, made := header, schedule.New(w)
	for _, line := range lines {
		if s, err := schedule.Replay(w, []byte(trace+line+"\n")); err == nil {
			trace, made = trace+line+"\n", s
		}
	}
	return made
}

// change makes one change.
func (g *dag) change(lines []string) []string {
	at := g.int("line", 0, int64(len(lines)-1))
	stage, number := g.int("stage", 0, 3), g.int("number", 0, 12)
	switch kind := rapid.IntRange(0, 8).Draw(g.t, "change"); kind {
	case 0:
		return append(lines[:at:at], lines[at+1:]...)
	case 1:
		return append(lines[:len(lines):len(lines)], lines[at])
	case 2:
		words := strings.Fields(lines[at])
		words[g.int("word", 1, int64(len(words)-1))] = fmt.Sprint(number)
		lines = append(lines[:0:0], lines...)
		lines[at] = strings.Join(words, " ")
		return lines
	default:
		added := []string{
			fmt.Sprintf("compute-at %d %d %d", stage, g.int("consumer", 0, 3), number), fmt.Sprintf("persist %d %d", stage, number),
			fmt.Sprintf("raster %d %d", stage, number), fmt.Sprintf("streamk %d %d", stage, number), fmt.Sprintf("unroll %d %d", stage, number),
			fmt.Sprintf("unit-loop %d", stage),
		}[kind-3]
		return append(append(lines[:at+1:at+1], added), lines[at+1:]...)
	}
}
