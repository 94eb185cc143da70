package importedseeds

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ansorLine is a line of an auto-scheduler log: a task with the steps of a schedule, a result, and a version.
type ansorLine struct {
	I      list            `json:"i"`
	R      list            `json:"r"`
	Input  json.RawMessage `json:"input"`
	Config json.RawMessage `json:"config"`
}

// hashed matches the name of a workload that TVM extracted from a model: a digest of its expressions.
var hashed = regexp.MustCompile(`^[0-9a-f]{32}$`)

// parseAnsor parses a line of an auto-scheduler log.
func parseAnsor(line []byte) (*measured, error) {
	var l ansorLine
	if err := json.Unmarshal(line, &l); err != nil {
		return nil, refuse(Malformed, "%v", err)
	}
	var task, state, steps list
	if !l.I.read(0, &task) {
		var target string
		if l.Input != nil && l.Config != nil || l.I.read(0, &target) {
			return nil, refuse(OtherFormat, "AutoTVM's: use --format autotvm")
		}
		return nil, refuse(Malformed, "it has no task")
	}
	var key, target string
	if !task.read(0, &key) || !task.read(1, &target) || !l.I.read(1, &state) || !state.read(1, &steps) {
		return nil, refuse(Malformed, "it has no workload, target or steps")
	}
	if err := checkTarget(target); err != nil {
		return nil, err
	}
	latency, err := seconds(l.R)
	if err != nil {
		return nil, err
	}
	shapes, err := shapesOf(key)
	if err != nil {
		return nil, err
	}
	s, err := readSteps(steps)
	if err != nil {
		return nil, err
	}
	m, err := s.interpret(shapes)
	if err != nil {
		return nil, err
	}
	m.seconds = latency
	return m, nil
}

// shapesOf returns the concatenated extents of a workload's arguments, the result last. Older versions of TVM
// wrote a single list instead of one per argument.
func shapesOf(key string) ([]int64, error) {
	var parts list
	var name string
	if json.Unmarshal([]byte(key), &parts) != nil || !parts.read(0, &name) {
		return nil, refuse(Malformed, "its workload is not a list with a name")
	}
	if !hashed.MatchString(name) {
		return nil, refuse(Undefined, "%s", name)
	}
	var shapes []int64
	for k := 1; k < len(parts); k++ {
		var one int64
		var several []int64
		switch {
		case parts.read(k, &one):
			shapes = append(shapes, one)
		case parts.read(k, &several):
			shapes = append(shapes, several...)
		default:
			return nil, refuse(Malformed, "argument %d of its workload is not a shape", k)
		}
	}
	for _, e := range shapes {
		if e < 1 || e > tvmMaxExtent {
			return nil, refuse(OutOfBounds, "an extent of %d", e)
		}
	}
	return shapes, nil
}

// split is an SP step: it splits an axis of a stage into lengths, outermost first, without the outermost of all.
type split struct {
	stage, extent int64
	lengths       []int64
}

// stepsRead holds the steps that affect tiles.
type stepsRead struct {
	splits []split
	// written is the maximum unroll count of loops, by stage.
	written map[int64]int64
}

const unrolling = "auto_unroll_max_step$"

// readSteps parses the steps ["SP", stage, axis, extent, lengths, inner to outer] and ["PR", stage, axis,
// pragma] of a schedule. Other steps move loops or concern other stages.
func readSteps(steps list) (*stepsRead, error) {
	s := &stepsRead{written: map[int64]int64{}}
	for k := range steps {
		var step list
		var kind, pragma string
		var stage int64
		if !steps.read(k, &step) || !step.read(0, &kind) {
			return nil, refuse(Malformed, "step %d has no kind", k)
		}
		step.read(1, &stage)
		switch kind {
		case "SP":
			one := split{stage: stage}
			if !step.read(3, &one.extent) || !step.read(4, &one.lengths) {
				return nil, refuse(Malformed, "step %d splits nothing", k)
			}
			s.splits = append(s.splits, one)
		case "PR":
			if step.read(3, &pragma) && strings.HasPrefix(pragma, unrolling) {
				n, err := strconv.ParseInt(strings.TrimPrefix(pragma, unrolling), 10, 32)
				if err != nil {
					return nil, refuse(Malformed, "step %d writes out %q", k, pragma)
				}
				s.written[stage] = n
			}
		}
	}
	return s, nil
}

// nest is a sum tiled as SSRSRS: loops over each spatial axis at four levels and over each reduction axis at
// two, in the order of these letters.
type nest struct {
	stage        int64
	results, sum []split
}

const (
	resultLevels = 3 // lengths of a four-way split
	sumLevels    = 1
)

// nests returns the stages whose consecutive splits form a tiled sum.
func (s *stepsRead) nests() (all []nest) {
	for k := 0; k < len(s.splits); {
		n := nest{stage: s.splits[k].stage}
		for ; k < len(s.splits) && s.splits[k].stage == n.stage && len(s.splits[k].lengths) == resultLevels; k++ {
			n.results = append(n.results, s.splits[k])
		}
		for ; len(n.results) > 0 && k < len(s.splits) && s.splits[k].stage == n.stage && len(s.splits[k].lengths) == sumLevels; k++ {
			n.sum = append(n.sum, s.splits[k])
		}
		if len(n.results) == 0 {
			k++
			continue
		}
		if len(n.sum) > 0 {
			all = append(all, n)
		}
	}
	return all
}

// valid reports whether the lengths divide the extents.
func (n nest) valid() bool {
	for _, s := range append(append([]split{}, n.results...), n.sum...) {
		left := s.extent
		for _, l := range s.lengths {
			if l < 1 || left < 1 || left%l != 0 {
				return false
			}
			left /= l
		}
		if left < 1 || s.extent > tvmMaxExtent {
			return false
		}
	}
	return true
}

// interpret identifies the operator of the tiled sum by the extents of its loops and the shapes of its arguments.
func (s *stepsRead) interpret(shapes []int64) (*measured, error) {
	nests := s.nests()
	switch {
	case len(nests) == 0:
		return nil, refuse(Structure, "its sum has no tiles of four levels")
	case len(nests) > 1:
		return nil, refuse(Ambiguous, "%d sums have tiles", len(nests))
	case !nests[0].valid():
		return nil, refuse(Malformed, "its lengths do not divide its extents")
	}
	n := nests[0]
	for _, read := range []func(nest, []int64) (*measured, error){
		convolutionOf, depthwiseOf, convolutionFirstOf, depthwiseFirstOf, denseOf, productsOf,
	} {
		if m, err := read(n, shapes); m != nil || err != nil {
			if m != nil {
				m.tiling = n.tiling(s.written[n.stage], m.tiling)
			}
			return m, err
		}
	}
	return nil, refuse(Unknown, "loops of %v and %v, of arguments %v", n.extents(n.results), n.extents(n.sum), shapes)
}

func (nest) extents(of []split) (list []int64) {
	for _, s := range of {
		list = append(list, s.extent)
	}
	return list
}

// begins and ends report whether shapes start or end with the given extents.
func begins(shapes []int64, with ...int64) bool {
	return len(shapes) >= len(with) && slices.Equal(shapes[:len(with)], with)
}

func ends(shapes []int64, with ...int64) bool {
	return len(shapes) >= len(with) && slices.Equal(shapes[len(shapes)-len(with):], with)
}

// denseOf matches a product of [m,k] by [n,k].
func denseOf(n nest, shapes []int64) (*measured, error) {
	r, k := n.extents(n.results), n.extents(n.sum)
	if len(r) != 2 || len(k) != 1 || len(shapes) < 6 || !begins(shapes, r[0], k[0], r[1], k[0]) || !ends(shapes, r...) {
		return nil, nil
	}
	return &measured{
		key:  fmt.Sprint("dense ", r, k),
		make: func() ([]*Operator, error) { return one(Dense(r[0], r[1], k[0])) },
	}, nil
}

// productsOf matches products of [batch,m,k] by [batch,n,k] or [batch,k,n].
func productsOf(n nest, shapes []int64) (*measured, error) {
	r, k := n.extents(n.results), n.extents(n.sum)
	if len(r) != 3 || len(k) != 1 || len(shapes) < 9 || !begins(shapes, r[0], r[1], k[0]) || !ends(shapes, r...) {
		return nil, nil
	}
	second := shapes[3:6]
	transposed, plain := slices.Equal(second, []int64{r[0], r[2], k[0]}), slices.Equal(second, []int64{r[0], k[0], r[2]})
	switch {
	case transposed && plain:
		return nil, refuse(Ambiguous, "operands of %v and %v", shapes[:3], second)
	case !transposed && !plain:
		return nil, nil
	}
	return &measured{
		key:  fmt.Sprint("products ", r, k, transposed),
		make: func() ([]*Operator, error) { return one(Products(r[0], r[1], r[2], k[0], transposed)) },
	}, nil
}
