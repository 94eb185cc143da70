package aot

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/lower"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// spot is a place in memory: in the arena, or in the weights.
type spot struct {
	inWeights bool
	offset    int64
	// further holds additional C terms, which depend on the extents of an execution.
	further string
}

// none marks an argument that a kernel does not read: a constant that it has packed.
var none = spot{offset: -1}

// String returns the address in C.
func (s spot) String() string {
	switch {
	case s == none:
		return "0"
	case s.inWeights:
		return fmt.Sprintf("weights + %d", s.offset)
	}
	return fmt.Sprintf("arena + %d%s", s.offset, s.further)
}

// layout is the memory layout of a running package.
type layout struct {
	program   *program.Program
	infos     []backend.Info
	workers   int64
	alignment alignment
	// values holds the places of root values; workspace is each call's offset in the arena.
	values    map[int]spot
	workspace []int64
	// constants lists the contents of weights.bin in order.
	constants    []constant
	byContent    map[string]int64
	weightsBytes int64
	arenaBytes   int64
	arenaMin     int64
	// checksLibraries is set if the package contains the function that checks its libraries.
	checksLibraries bool
	// uses lists the contents of the arena with their lifetimes, for reports of memory use.
	uses []use
}

// use is a part of the arena: a value, or, without a name, the scratch of a call.
type use struct {
	span
	name string
}

// constant is a tensor of weights.bin, packed by a kernel if pack is set.
type constant struct {
	offset int64
	root   int
	pack   *ir.Pack
}

// newLayout plans the memory of a program whose tasks were lowered to infos.
func newLayout(p *program.Program, infos []backend.Info, workers int, a alignment) *layout {
	l := &layout{program: p, infos: infos, workers: int64(workers), alignment: a, values: map[int]spot{}, byContent: map[string]int64{}}
	l.planArena()
	for _, v := range p.Results() {
		l.value(v) // places outputs that are constants in the weights
	}
	return l
}

// planArena places values and scratch. Inputs live for the whole run, so that a model can run again on the same
// inputs; outputs live from their computation on.
func (l *layout) planArena() {
	p := l.program
	last := len(p.Calls)
	var spans []span
	spanOf := map[int]int{} // by root
	extend := func(v, from, to int) {
		root := p.Root(v)
		if p.Values[root].Data != nil {
			return
		}
		k, ok := spanOf[root]
		if !ok {
			k = len(spans)
			spanOf[root] = k
			spans = append(spans, span{bytes: valueBytes(p, root), from: from, to: to})
		}
		spans[k].from, spans[k].to = min(spans[k].from, from), max(spans[k].to, to)
	}
	for _, v := range p.Inputs {
		extend(v, -1, last)
	}
	for _, e := range p.Extents {
		extend(e.Value, -1, last)
	}
	for k, c := range p.Calls {
		from, to := p.Span(k)
		for _, v := range c.Args {
			extend(v, from, to)
		}
	}
	for _, loop := range p.Loops {
		from, to := p.Span(loop.First)
		for _, v := range loop.Values() {
			extend(v, from, to)
		}
	}
	for _, v := range p.Results() {
		extend(v, last, last)
	}
	scratch := len(spans)
	for k, c := range p.Calls {
		bytes := int64(0)
		for _, task := range c.Tasks() {
			bytes = max(bytes, l.infos[task].WorkspaceBytes+l.workers*l.infos[task].WorkerBytes)
		}
		spans = append(spans, span{bytes: bytes, from: k, to: k})
	}
	for _, s := range spans {
		l.uses = append(l.uses, use{span: s})
	}
	for root, k := range spanOf {
		l.uses[k].name = p.Values[root].Name
	}
	offsets, total := l.alignment.place(spans, len(p.Extents) > 0)
	for root, k := range spanOf {
		l.values[root] = spot{offset: offsets[k]}
	}
	l.workspace, l.arenaBytes, l.arenaMin = offsets[scratch:], total, l.alignment.lowerBound(spans)
}

func valueBytes(p *program.Program, v int) int64 {
	return array.Elements(p.Values[v].Shape) * p.Values[v].DType.Bytes()
}

// value returns the place of a value; a constant is placed in the weights on its first use.
func (l *layout) value(v int) spot {
	root := l.program.Root(v)
	if l.program.Values[root].Data == nil {
		s := l.values[root]
		value := l.program.Values[v]
		s.offset += value.Offset * value.DType.Bytes()
		for k, n := range value.Moves {
			if n != 0 {
				s.further += fmt.Sprintf(" + %d * %s", n*value.DType.Bytes(), l.count(k))
			}
		}
		for k, n := range value.Turns {
			if n != 0 {
				s.further += fmt.Sprintf(" + %d * %s", n*value.DType.Bytes(), l.counter(k))
			}
		}
		for k, n := range value.Lengths {
			if n != 0 {
				s.further += fmt.Sprintf(" + %d * *(const int64_t *)(%s)", n*value.DType.Bytes(), l.value(l.program.Loops[k].Iterations))
			}
		}
		return s
	}
	return l.constant(root, nil)
}

// count returns an extent in C.
func (l *layout) count(extent int) string {
	return fmt.Sprintf("*(const int64_t *)(arena + %d)", l.values[l.program.Extents[extent].Value].offset)
}

// counter returns the number of a loop's iteration in C.
func (l *layout) counter(loop int) string {
	return fmt.Sprintf("*(int64_t *)(arena + %d)", l.values[l.program.Root(l.program.Loops[loop].Counter)].offset)
}

// loopsBefore prints the beginning of the loops whose first call is k.
func (l *layout) loopsBefore(k int) string {
	var b strings.Builder
	for i, loop := range l.program.Loops {
		if loop.First == k {
			b.WriteString(l.beginLoop(i))
		}
	}
	return b.String()
}

// loopsAfter prints the end of the loops whose last call is k.
func (l *layout) loopsAfter(k int) string {
	var b strings.Builder
	for i, loop := range slices.Backward(l.program.Loops) {
		if loop.End == k+1 {
			b.WriteString(l.endLoop(i))
		}
	}
	return b.String()
}

// beginLoop prints what precedes the calls of a loop, and each iteration.
func (l *layout) beginLoop(loop int) string {
	var b strings.Builder
	made := l.program.Loops[loop]
	for _, s := range made.States {
		fmt.Fprintf(&b, "  move_bytes(%s, %s, %d);\n", l.value(s.Value), l.value(s.Init), valueBytes(l.program, s.Value))
	}
	while := ""
	if made.While {
		while = fmt.Sprintf(" && *(const uint8_t *)(%s)", l.value(made.States[0].Value))
	}
	fmt.Fprintf(&b, "  for (int64_t i%[1]d = 0; i%[1]d < *(const int64_t *)(%[2]s)%[3]s; i%[1]d++) {\n  %[4]s = i%[1]d;\n",
		loop, l.value(made.Iterations), while, l.counter(loop))
	return b.String()
}

// endLoop prints what follows the calls of a loop in each iteration.
func (l *layout) endLoop(loop int) string {
	var b strings.Builder
	for _, s := range l.program.Loops[loop].States {
		fmt.Fprintf(&b, "  move_bytes(%s, %s, %d);\n", l.value(s.Value), l.value(s.Next), valueBytes(l.program, s.Value))
	}
	return b.String() + "  }\n"
}

// ofZeros prints the beginning of a call that adds the product of a loop's state and weights to other data: that of a
// state of zeros, with which recurrent layers begin, need not be computed.
func (l *layout) ofZeros(call int) string {
	p, c := l.program, l.program.Calls[call]
	w := p.Tasks[c.Task].Workload
	if len(w.Stages) != 2 || len(w.Inputs) != 2 || len(w.Constants) != 1 {
		return ""
	}
	sum, out, state, other := w.Stages[0], w.Stages[1], w.Inputs[0], w.Inputs[1]
	a, b, ok := schedule.Factors(sum.Body)
	ok = ok && sum.Combiner == expr.Sum && (a.Tensor == state || b.Tensor == state) && out.Strides == nil && other.Strides == nil
	if at := expr.Exprs(out.Axes); !ok || !slices.Equal(sum.Shape, out.Shape) || !slices.Equal(other.Shape, out.Shape) || !expr.Same(out.Body, expr.AddE(sum.At(at...), other.At(at...))) {
		return ""
	}
	for k, loop := range p.Loops {
		for _, s := range loop.States {
			begin := p.Values[p.Root(s.Init)].Data
			if loop.First <= call && call < loop.End && p.Root(c.Args[0]) == p.Root(s.Value) && begin != nil && strings.Trim(string(begin.Data), "\x00") == "" {
				return fmt.Sprintf("if (!i%d) move_bytes(%s, %s, %d); else ", k, l.value(c.Args[3]), l.value(c.Args[1]), array.Elements(out.Shape)*out.DType.Bytes())
			}
		}
	}
	return ""
}

func (l *layout) constant(root int, pack *ir.Pack) spot {
	key := fmt.Sprint(root)
	bytes := valueBytes(l.program, root)
	if pack != nil {
		key += " " + pack.Workload.Digest()
		bytes = pack.Buffer.Bytes()
	}
	offset, ok := l.byContent[key]
	if !ok {
		offset = l.alignment.up(l.weightsBytes)
		l.byContent[key] = offset
		l.constants = append(l.constants, constant{offset, root, pack})
		l.weightsBytes = offset + bytes
	}
	return spot{inWeights: true, offset: offset}
}

// call returns the places of a call's arguments and packed constants, for one of its tasks.
func (l *layout) call(k, task int) (args, prepared []spot) {
	c := l.program.Calls[k]
	w := l.program.Tasks[task].Workload
	packed := map[int]bool{}
	for i := range l.infos[task].Prepared {
		pack := &l.infos[task].Prepared[i]
		arg := len(w.Inputs) + pack.Constant
		packed[arg] = true
		prepared = append(prepared, l.constant(l.program.Root(c.Args[arg]), pack))
	}
	for i, v := range c.Args {
		if packed[i] {
			args = append(args, none)
			continue
		}
		args = append(args, l.value(v))
	}
	return args, prepared
}

// writeWeights writes the constants in order, and packs them on the way.
func (l *layout) writeWeights(out io.Writer) error {
	var at int64
	for _, c := range l.constants {
		data, err := l.content(c)
		if err != nil {
			return err
		}
		if _, err := out.Write(make([]byte, c.offset-at)); err != nil {
			return err
		}
		if _, err := out.Write(data.Data); err != nil {
			return err
		}
		at = c.offset + int64(len(data.Data))
	}
	return nil
}

func (l *layout) content(c constant) (*array.Array, error) {
	v := l.program.Values[c.root]
	if c.pack == nil {
		return v.Data, nil
	}
	// The workload may use another shape for the same elements.
	source := &array.Array{DType: v.DType, Shape: c.pack.Workload.Constants[0].Shape, Data: v.Data.Data}
	if err := source.Check(); err != nil {
		return nil, fmt.Errorf("packing %s: %w", v.Name, err)
	}
	return lower.FillPack(*c.pack, source), nil
}
