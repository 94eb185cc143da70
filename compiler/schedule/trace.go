package schedule

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
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

// primitive describes a primitive by the name that starts its line in a trace.
type primitive struct {
	// numbers is the number of arguments; negative means at least that many.
	numbers int
	apply   func(s *Schedule, a []int) error
}

var primitives = map[string]primitive{
	"split": {4, func(s *Schedule, a []int) error {
		_, _, err := s.Split(a[0], a[1], int64(a[2]), Tail(a[3]))
		return err
	}},
	"fuse":        {3, func(s *Schedule, a []int) error { _, err := s.Fuse(a[0], a[1], a[2]); return err }},
	"fuse-held":   {3, func(s *Schedule, a []int) error { _, err := s.FuseHeld(a[0], a[1], a[2]); return err }},
	"reorder":     {-2, func(s *Schedule, a []int) error { return s.Reorder(a[0], a[1:]...) }},
	"compute-at":  {3, func(s *Schedule, a []int) error { return s.ComputeAt(a[0], a[1], a[2]) }},
	"inline":      {1, func(s *Schedule, a []int) error { return s.Inline(a[0]) }},
	"cache-write": {1, func(s *Schedule, a []int) error { _, err := s.CacheWrite(a[0]); return err }},
	"cache-read":  {-2, func(s *Schedule, a []int) error { _, err := s.CacheRead(a[0], a[1], a[2:]); return err }},
	"pack":        {-1, (*Schedule).applyPack},
	"prefetch":    {2, func(s *Schedule, a []int) error { return s.Prefetch(a[0], int64(a[1])) }},
	"fetch":       {2, func(s *Schedule, a []int) error { return s.Fetch(a[0], int64(a[1])) }},
	"rfactor": {4, func(s *Schedule, a []int) error {
		_, err := s.RFactor(a[0], a[1], int64(a[2]), Part(a[3]))
		return err
	}},
	"parallel":  {2, func(s *Schedule, a []int) error { return s.Parallel(a[0], a[1]) }},
	"vectorize": {2, func(s *Schedule, a []int) error { return s.Vectorize(a[0], a[1]) }},
	"unroll":    {2, func(s *Schedule, a []int) error { return s.Unroll(a[0], a[1]) }},
	"widen":     {3, func(s *Schedule, a []int) error { _, err := s.Widen(a[0], a[1], array.DType(a[2])); return err }},
	"extend":    {2, func(s *Schedule, a []int) error { _, err := s.Extend(a[0], int64(a[1])); return err }},
	"adjoin": {3, func(s *Schedule, a []int) error {
		_, err := s.Adjoin(a[0], int64(a[1]), array.DType(a[2]))
		return err
	}},
	"round": {2, func(s *Schedule, a []int) error { _, err := s.Round(a[0], a[1]); return err }},
	"interleave": {5, func(s *Schedule, a []int) error {
		_, err := s.Interleave(a[0], a[1], a[2], a[3], int64(a[4]))
		return err
	}},
	"blockwise": {2, func(s *Schedule, a []int) error {
		_, err := s.Blockwise(a[0], BlockForm(min(a[1], math.MaxUint8)))
		return err
	}},
	"trim":      {2, func(s *Schedule, a []int) error { return s.Trim(a[0], a[1]) }},
	"dot":       {2, func(s *Schedule, a []int) error { return s.Dot(a[0], a[1]) }},
	"winograd":  {-2, (*Schedule).applyWinograd},
	"strassen":  {-2, (*Schedule).applyStrassen},
	"flatten":   {-3, func(s *Schedule, a []int) error { return s.Flatten(a[0], a[1:]...) }},
	"skew":      {2, func(s *Schedule, a []int) error { return s.StorageAlign(a[0], int64(a[1])) }},
	"stream":    {1, func(s *Schedule, a []int) error { return s.Stream(a[0]) }},
	"bind":      {3, func(s *Schedule, a []int) error { return s.Bind(a[0], a[1], Level(min(a[2], math.MaxUint8))) }},
	"tensorize": {3, func(s *Schedule, a []int) error { return s.Tensorize(a[0], a[1], Format(min(a[2], math.MaxUint8))) }},
	"shuffle":   {2, func(s *Schedule, a []int) error { return s.Shuffle(a[0], a[1]) }},
	"online":    {2, func(s *Schedule, a []int) error { _, err := s.Online(a[0], int64(a[1])); return err }},
	"scope":     {2, func(s *Schedule, a []int) error { return s.SetScope(a[0], Scope(min(a[1], math.MaxUint8))) }},
	"swizzle":   {1, func(s *Schedule, a []int) error { return s.Swizzle(a[0]) }},
	"bulk":      {1, func(s *Schedule, a []int) error { return s.TMACopy(a[0]) }},
	"persist":   {2, func(s *Schedule, a []int) error { return s.Persist(a[0], int64(a[1])) }},
	"raster":    {2, func(s *Schedule, a []int) error { return s.Raster(a[0], int64(a[1])) }},
	"unit-loop": {1, func(s *Schedule, a []int) error { _, err := s.UnitLoop(a[0]); return err }},
	"streamk":   {2, func(s *Schedule, a []int) error { return s.StreamK(a[0], int64(a[1])) }},
	"pipeline":  {2, func(s *Schedule, a []int) error { return s.Pipeline(a[0], int64(a[1])) }},
}

// choices describes the last number of some primitives: what it selects, and its maximum.
var choices = map[string]struct {
	of   string
	most int
}{
	"split": {"tail", int(Fit)}, "rfactor": {"part", int(Planes)},
	"widen": {"type", int(array.Bool)}, "adjoin": {"type", int(array.Bool)},
}

func (s *Schedule) dispatch(op string, a []int) error {
	p, known := primitives[op]
	if !known {
		return fmt.Errorf("%q is not a primitive", op)
	}
	if p.numbers >= 0 && len(a) != p.numbers || p.numbers < 0 && len(a) < -p.numbers {
		return fmt.Errorf("%s does not take %d numbers", op, len(a))
	}
	if last, ok := choices[op]; ok && a[len(a)-1] > last.most {
		return fmt.Errorf("%s: %d is not a %s", op, a[len(a)-1], last.of)
	}
	return p.apply(s, a)
}

func (s *Schedule) applyPack(a []int) error {
	if len(a)%3 != 1 {
		return fmt.Errorf("pack does not take %d numbers", len(a))
	}
	var dims []PackDim
	for k := 1; k < len(a); k += 3 {
		dims = append(dims, PackDim{Dim: a[k], Factor: int64(a[k+1]), Inner: a[k+2] != 0})
	}
	return s.Pack(a[0], dims)
}

// applyWinograd reads the outputs of a tile, for both directions or as rows and columns, followed by an optional type.
func (s *Schedule) applyWinograd(a []int) error {
	switch {
	case len(a) > 4:
		return fmt.Errorf("winograd does not take %d numbers", len(a))
	case len(a) == 4 && a[3] > int(array.Bool):
		return fmt.Errorf("winograd: %d is not a type", a[3])
	case len(a) == 4:
		_, err := s.WinogradAs(a[0], int64(a[1]), int64(a[2]), array.DType(a[3]))
		return err
	}
	_, err := s.Winograd(a[0], int64(a[1]), int64(a[len(a)-1]))
	return err
}

// applyStrassen reads the group of columns and a flag that selects computed sums of the constant.
func (s *Schedule) applyStrassen(a []int) error {
	sums := Compiled
	switch {
	case len(a) == 3 && a[2] == int(Computed):
		sums = Computed
	case len(a) != 2:
		return fmt.Errorf("strassen does not take %v after the stage", a[1:])
	}
	_, err := s.Strassen(a[0], int64(a[1]), sums)
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
