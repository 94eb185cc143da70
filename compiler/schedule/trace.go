package schedule

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/userkernel"
)

// traceHeader starts every trace; its number changes with the meaning of traces.
const traceHeader = "tilth-trace 1"

// Limits on the input of Replay, far above any real trace.
const (
	maxTraceBytes = 64 << 10
	maxSteps      = 512
)

type step struct {
	op   string
	args []int
}

func (s *Schedule) record(op string, args ...int) {
	s.steps = append(s.steps, step{op, args})
}

// change applies a primitive to a stage and records it. Errors begin with the primitive's name.
func (s *Schedule) change(op string, stageID int, args []int, apply func(g *Stage) error) error {
	g, err := s.stage(stageID)
	if err == nil {
		err = apply(g)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	s.record(op, append([]int{stageID}, args...)...)
	return nil
}

// changeLeaf is change for a primitive on a leaf, whose number is the first of args.
func (s *Schedule) changeLeaf(op string, stageID int, args []int, apply func(g *Stage, it *Iter) error) error {
	return s.change(op, stageID, args, func(g *Stage) error {
		it, err := g.leaf(args[0])
		if err != nil {
			return err
		}
		return apply(g, it)
	})
}

// replace is change for a primitive that must precede all others on a stage.
func (s *Schedule) replace(op string, stageID int, args []int, apply func(g *Stage) error) error {
	return s.change(op, stageID, args, func(g *Stage) error {
		if s.scheduled(g) {
			return fmt.Errorf("stage %d was already scheduled", stageID)
		}
		return apply(g)
	})
}

// Trace returns the primitives applied so far, one per line: the name and its numbers. For a user kernel, the trace
// contains the kernel itself and the values of its knobs.
func (s *Schedule) Trace() []byte {
	if s.Own != nil {
		return []byte(traceHeader + "\n" + s.Own.Trace())
	}
	var b strings.Builder
	b.WriteString(traceHeader + "\n")
	for _, st := range s.steps {
		b.WriteString(st.op)
		for _, a := range st.args {
			b.WriteString(" " + strconv.Itoa(a))
		}
		b.WriteString("\n")
	}
	return []byte(b.String())
}

// Digest returns the lower-case hex SHA-256 of a trace.
func Digest(trace []byte) string {
	sum := sha256.Sum256(trace)
	return hex.EncodeToString(sum[:])
}

// Replay applies a trace to a workload. The error gives the line and the reason why it is not legal.
func Replay(w *expr.Workload, trace []byte) (*Schedule, error) {
	if len(trace) > maxTraceBytes {
		return nil, fmt.Errorf("trace: %d bytes are over the limit of %d", len(trace), maxTraceBytes)
	}
	lines := strings.Split(strings.TrimSuffix(string(trace), "\n"), "\n")
	if lines[0] != traceHeader {
		return nil, fmt.Errorf("trace: line 1 is not %q", traceHeader)
	}
	if len(lines) > maxSteps {
		return nil, fmt.Errorf("trace: more than %d steps", maxSteps)
	}
	if len(lines) > 1 && userkernel.IsTrace(lines[1]) {
		return replayOwn(w, lines[1:])
	}
	s := New(w)
	for k, line := range lines[1:] {
		if err := s.apply(line); err != nil {
			return nil, fmt.Errorf("trace: line %d: %w", k+2, err)
		}
	}
	return s, nil
}

func (s *Schedule) apply(line string) error {
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return fmt.Errorf("empty line")
	}
	args := make([]int, len(fields)-1)
	for k, f := range fields[1:] {
		n, err := strconv.ParseInt(f, 10, 32)
		if err != nil || n < 0 {
			return fmt.Errorf("%q is not a number", f)
		}
		args[k] = int(n)
	}
	return s.dispatch(fields[0], args)
}

// primitives holds the primitives by the name that starts their line in a trace. The numbers that follow are the
// arguments, at least one of them for a variadic parameter.
var primitives = map[string]any{
	"split":       (*Schedule).Split,
	"fuse":        (*Schedule).Fuse,
	"fuse-held":   (*Schedule).FuseHeld,
	"reorder":     (*Schedule).Reorder,
	"compute-at":  (*Schedule).ComputeAt,
	"inline":      (*Schedule).Inline,
	"cache-write": (*Schedule).CacheWrite,
	"cache-read": func(s *Schedule, stageID, load int, perm ...int) error {
		_, err := s.CacheRead(stageID, load, perm)
		return err
	},
	"pack":       (*Schedule).applyPack,
	"prefetch":   (*Schedule).Prefetch,
	"fetch":      (*Schedule).Fetch,
	"rfactor":    (*Schedule).RFactor,
	"parallel":   (*Schedule).Parallel,
	"vectorize":  (*Schedule).Vectorize,
	"unroll":     (*Schedule).Unroll,
	"widen":      (*Schedule).Widen,
	"extend":     (*Schedule).Extend,
	"adjoin":     (*Schedule).Adjoin,
	"round":      (*Schedule).Round,
	"interleave": (*Schedule).Interleave,
	"blockwise":  (*Schedule).Blockwise,
	"trim":       (*Schedule).Trim,
	"dot":        (*Schedule).Dot,
	"winograd":   (*Schedule).applyWinograd,
	"strassen":   (*Schedule).applyStrassen,
	"flatten":    (*Schedule).Flatten,
	"skew":       (*Schedule).StorageAlign,
	"stream":     (*Schedule).Stream,
	"bind":       (*Schedule).Bind,
	"tensorize":  (*Schedule).Tensorize,
	"shuffle":    (*Schedule).Shuffle,
	"online":     (*Schedule).Online,
	"scope":      (*Schedule).SetScope,
	"swizzle":    (*Schedule).Swizzle,
	"bulk":       (*Schedule).TMACopy,
	"persist":    (*Schedule).Persist,
	"raster":     (*Schedule).Raster,
	"unit-loop":  (*Schedule).UnitLoop,
	"streamk":    (*Schedule).StreamK,
	"pipeline":   (*Schedule).Pipeline,
}

// choices holds the largest values of types that primitives do not check.
var choices = map[reflect.Type]struct {
	name string
	most int
}{
	reflect.TypeFor[Tail](): {"tail", int(Fit)}, reflect.TypeFor[Part](): {"part", int(Planes)}, reflect.TypeFor[array.DType](): {"type", int(array.Bool)},
}

func (s *Schedule) dispatch(op string, a []int) error {
	p, known := primitives[op]
	if !known {
		return fmt.Errorf("%q is not a primitive", op)
	}
	f := reflect.TypeOf(p)
	last, variadic := f.NumIn()-1, f.IsVariadic()
	if len(a) < last || len(a) > last && !variadic {
		return fmt.Errorf("%s does not take %d numbers", op, len(a))
	}
	in := []reflect.Value{reflect.ValueOf(s)}
	for k, n := range a {
		to := f.In(min(k+1, last))
		if variadic && k+1 >= last {
			to = to.Elem()
		}
		if c, ok := choices[to]; ok && n > c.most {
			return fmt.Errorf("%s: %d is not a %s", op, n, c.name)
		}
		if to.Kind() == reflect.Uint8 {
			n = min(n, math.MaxUint8)
		}
		in = append(in, reflect.ValueOf(n).Convert(to))
	}
	out := reflect.ValueOf(p).Call(in)
	err, _ := out[len(out)-1].Interface().(error)
	return err
}

// applyPack reads three numbers for each dimension of a layout.
func (s *Schedule) applyPack(constant int, a ...int) error {
	if len(a)%3 != 0 {
		return fmt.Errorf("pack does not take %d numbers", len(a)+1)
	}
	var dims []PackDim
	for d := range slices.Chunk(a, 3) {
		dims = append(dims, PackDim{Dim: d[0], Factor: int64(d[1]), Inner: d[2] != 0})
	}
	return s.Pack(constant, dims)
}

// applyWinograd reads the outputs of a tile, for both directions or as rows and columns, followed by an optional type.
func (s *Schedule) applyWinograd(stageID int, a ...int) error {
	as := array.Invalid
	switch {
	case len(a) > 3:
		return fmt.Errorf("winograd does not take %d numbers", len(a)+1)
	case len(a) == 3 && a[2] > int(array.Bool):
		return fmt.Errorf("winograd: %d is not a type", a[2])
	case len(a) == 3:
		as, a = array.DType(a[2]), a[:2]
	}
	_, err := s.WinogradAs(stageID, int64(a[0]), int64(a[len(a)-1]), as)
	return err
}

// applyStrassen reads the group of columns and a flag that selects computed sums of the constant.
func (s *Schedule) applyStrassen(stageID int, a ...int) error {
	sums := Compiled
	switch {
	case len(a) == 2 && a[1] == int(Computed):
		sums = Computed
	case len(a) != 1:
		return fmt.Errorf("strassen does not take %v after the stage", a)
	}
	_, err := s.Strassen(stageID, int64(a[0]), sums)
	return err
}

// UseOwn computes the workload by a user kernel, with constants in the layout that the kernel declares. It replaces
// all primitives.
func (s *Schedule) UseOwn(c *userkernel.Candidate) error {
	if len(s.steps) > 0 || s.Own != nil {
		return fmt.Errorf("own kernel %s: the workload was already scheduled", c.Kernel.Name)
	}
	layouts, err := c.Layouts()
	if err != nil {
		return err
	}
	for _, constant := range slices.Sorted(maps.Keys(layouts)) {
		layout := layouts[constant]
		dims := make([]PackDim, len(layout))
		for k, d := range layout {
			dims[k] = PackDim{Dim: d.Dim, Factor: d.Factor, Inner: d.Inner}
		}
		if err := s.Pack(constant, dims); err != nil {
			return fmt.Errorf("own kernel %s: %w", c.Kernel.Name, err)
		}
	}
	level, err := ParseNumerics(c.Kernel.Numerics)
	if err != nil {
		return fmt.Errorf("own kernel %s: %w", c.Kernel.Name, err)
	}
	s.Own = c
	s.algorithms = append(s.algorithms, algorithm{name: c.Kernel.Label(), level: level, growth: 1, multiplications: 1})
	return nil
}

// replayOwn applies the lines of a trace that contains a user kernel.
func replayOwn(w *expr.Workload, lines []string) (*Schedule, error) {
	c, err := userkernel.Replay(w, lines)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	s := New(w)
	if err := s.UseOwn(c); err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	return s, nil
}
