package importedseeds

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/compiler/searchspace"
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
		if e < 1 || e > seedsMaxExtent {
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
		if left < 1 || s.extent > seedsMaxExtent {
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

// convolutionOf matches a convolution of [n,h,w,c] by [kh,kw,c,o].
func convolutionOf(n nest, shapes []int64) (*measured, error) {
	r, k := n.extents(n.results), n.extents(n.sum)
	if len(r) != 4 || len(k) != 3 || len(shapes) < 12 {
		return nil, nil
	}
	for _, first := range []int{0, 1} { // index of the kernel's rows, with channels last or first
		rows, columns, channels := k[first], k[first+1], k[(first+2)%3]
		if shapes[0] != r[0] || shapes[3] != channels || !slices.Equal(shapes[4:8], []int64{rows, columns, channels, r[3]}) || !ends(shapes, r...) {
			continue
		}
		if first == 1 {
			n.sum[0], n.sum[1], n.sum[2] = n.sum[1], n.sum[2], n.sum[0]
		}
		return guessed(shapes, r, rows, columns, []int64{r[3], channels}, 1)
	}
	return nil, nil
}

// depthwiseOf matches a depthwise convolution of [n,h,w,c] by [kh,kw,c,1].
func depthwiseOf(n nest, shapes []int64) (*measured, error) {
	r, k := n.extents(n.results), n.extents(n.sum)
	if len(r) != 4 || len(k) != 2 || len(shapes) < 12 || shapes[0] != r[0] || shapes[3] != r[3] ||
		!slices.Equal(shapes[4:8], []int64{k[0], k[1], r[3], 1}) || !ends(shapes, r...) {
		return nil, nil
	}
	return guessed(shapes, r, k[0], k[1], []int64{r[3], 1}, r[3])
}

// convolutionFirstOf matches a convolution of [n,c,h,w] by [o,c,kh,kw]. TVM vectorizes it along columns, and
// schedules here along channels; the set of results in a tile and the order of sums carry over.
func convolutionFirstOf(n nest, shapes []int64) (*measured, error) {
	r, k := n.extents(n.results), n.extents(n.sum)
	if len(r) != 4 || len(k) != 3 || len(shapes) < 12 || !begins(shapes, r[0], k[0]) ||
		!slices.Equal(shapes[4:8], []int64{r[1], k[0], k[1], k[2]}) || !ends(shapes, r...) {
		return nil, nil
	}
	n.channelsLast()
	n.sum[0], n.sum[1], n.sum[2] = n.sum[1], n.sum[2], n.sum[0]
	return guessed(lastOf(shapes), n.extents(n.results), k[1], k[2], []int64{r[1], k[0]}, 1)
}

// depthwiseFirstOf matches a depthwise convolution of [n,c,h,w] by [c,1,kh,kw].
func depthwiseFirstOf(n nest, shapes []int64) (*measured, error) {
	r, k := n.extents(n.results), n.extents(n.sum)
	if len(r) != 4 || len(k) != 2 || len(shapes) < 12 || !begins(shapes, r[0], r[1]) ||
		!slices.Equal(shapes[4:8], []int64{r[1], 1, k[0], k[1]}) || !ends(shapes, r...) {
		return nil, nil
	}
	n.channelsLast()
	return guessed(lastOf(shapes), n.extents(n.results), k[0], k[1], []int64{r[1], 1}, r[1])
}

// channelsLast reorders results from [n,c,h,w] to [n,h,w,c].
func (n nest) channelsLast() {
	n.results[1], n.results[2], n.results[3] = n.results[2], n.results[3], n.results[1]
}

// lastOf returns the shape of data [n,c,h,w] as [n,h,w,c].
func lastOf(shapes []int64) []int64 { return []int64{shapes[0], shapes[2], shapes[3], shapes[1]} }

// guessed returns a convolution with strides and padding inferred from the shapes of data and results,
// because the log contains neither. It is ambiguous if several strides fit; all fitting paddings are
// accepted, since they do not affect tiles. Dilation is assumed to be 1: a dilated convolution with other
// padding has the same shapes and is not recognised.
func guessed(shapes, results []int64, rows, columns int64, weights []int64, groups int64) (*measured, error) {
	down, err := slides(shapes[1], rows, results[1])
	if err != nil {
		return nil, err
	}
	across, err := slides(shapes[2], columns, results[2])
	if err != nil {
		return nil, err
	}
	data := []int64{results[0], shapes[3], shapes[1], shapes[2]}
	kernel := []int64{weights[0], weights[1], rows, columns}
	return &measured{
		key: fmt.Sprint("conv2d ", data, kernel, results, groups),
		make: func() (all []*Operator, err error) {
			for _, d := range down.pads {
				for _, a := range across.pads {
					o, err := Convolution(data, kernel, Window{
						Strides: [2]int64{down.stride, across.stride}, Dilations: [2]int64{1, 1},
						Pads: [4]int64{d[0], a[0], d[1], a[1]}, Groups: groups,
					})
					if err != nil {
						return nil, err
					}
					all = append(all, o)
				}
			}
			return all, nil
		},
	}, nil
}

// slide is a stride with the paddings before and after that give results of an extent.
type slide struct {
	stride int64
	pads   [][2]int64
}

// slides finds the stride and paddings. Padding is smaller than the window, and equal on both sides or larger
// by one on either side.
func slides(extent, window, results int64) (s slide, err error) {
	for stride := int64(1); stride <= extent; stride++ {
		var pads [][2]int64
		for padding := range window {
			room := extent + padding - window
			if room < 0 || room/stride+1 != results {
				continue
			}
			pads = append(pads, [2]int64{padding / 2, padding - padding/2})
			if padding%2 == 1 {
				pads = append(pads, [2]int64{padding - padding/2, padding / 2})
			}
			if len(pads) > maxPads {
				return s, refuse(Ambiguous, "a window of %d on %d makes %d in many ways", window, extent, results)
			}
		}
		switch {
		case len(pads) == 0 && extent/stride+1 < results:
			stride = extent // larger strides give even fewer results
		case len(pads) > 0 && s.stride > 0:
			return s, refuse(Ambiguous, "strides %d and %d both make %d of %d", s.stride, stride, results, extent)
		case len(pads) > 0:
			s = slide{stride, pads}
		}
	}
	if s.stride == 0 {
		return s, refuse(Unknown, "a window of %d does not map %[3]d to %[2]d", window, results, extent)
	}
	return s, nil
}

// maxPads bounds the paddings tried per axis.
const maxPads = 6

// maxAccumulators is the maximum number of results of a register tile: sixteen vectors of eight.
const maxAccumulators = 128

// tiling converts the levels to a tiling. The innermost spatial level is computed for each step of the inner
// reduction level, and the level around it for each step of the outer one. The results that stay live during
// the reduction form a register tile here, if they fit.
func (n nest) tiling(written int64, t searchspace.Tiling) searchspace.Tiling {
	inner, outer, outermost := n.level(2), n.level(1), n.level(0)
	steps := int64(1)
	for _, s := range n.sum {
		steps *= s.lengths[0]
	}
	tile, tiles := inner, multiply(outermost, outer)
	vectorized := len(inner) - 1
	if all := multiply(inner, outer); product(all) <= maxAccumulators {
		tile, tiles = all, outermost
	}
	t.Channels, t.ChannelTiles = tile[vectorized], tiles[vectorized]
	t.Columns, t.ColumnTiles = 1, 1
	t.Rows, t.RowTiles = 1, 1
	if k := vectorized - 1; k >= 0 {
		t.Columns, t.ColumnTiles = tile[k], tiles[k]
	}
	if k := vectorized - 2; k >= 0 && len(tile) == 4 { // with three axes, it is the batch
		t.Rows, t.RowTiles = tile[k], tiles[k]
	}
	if len(n.sum) == 3 { // rows, columns, channels
		t.Reduce = n.sum[2].lengths[0]
	}
	if positions := max(1, product(tile[:vectorized])); written >= positions {
		t.Unroll = max(1, min(steps, written/positions))
	}
	return t
}

// level returns the lengths of the spatial axes at a level; 2 is the innermost.
func (n nest) level(k int) (list []int64) {
	for _, s := range n.results {
		list = append(list, s.lengths[k])
	}
	return list
}

func multiply(a, b []int64) []int64 {
	c := make([]int64, len(a))
	for k := range a {
		c[k] = a[k] * b[k]
	}
	return c
}

func product(list []int64) int64 {
	p := int64(1)
	for _, n := range list {
		p = min(seedsMaxExtent*seedsMaxExtent, p*n)
	}
	return p
}
