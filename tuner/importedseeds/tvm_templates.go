package importedseeds

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/searchspace"
)

const (
	nchw = "NCHW"
	nhwc = "NHWC"
)

// template parses a task's arguments and the knobs of its template.
type template func(args list, k *knobs) (*measured, error)

// templates lists the templates with a loop order like ours, by task name.
var templates = map[string]template{
	"conv2d_NCHWc.x86":                           blocked(false),
	"topi_x86_conv2d_NCHWc":                      blocked(false),
	"topi_nn_conv2d":                             either("tile_ic", blocked(false), packed(nchw, false)),
	"conv2d_nchw_spatial_pack.arm_cpu":           packed(nchw, false),
	"conv2d_nhwc_spatial_pack.arm_cpu":           packed(nhwc, false),
	"depthwise_conv2d_NCHWc.x86":                 blocked(true),
	"topi_x86_depthwise_conv2d_NCHWc_from_nchw":  blocked(true),
	"depthwise_conv2d_nchw_spatial_pack.arm_cpu": packed(nchw, true),
	"depthwise_conv2d_nchw.arm_cpu":              planes,
	"topi_nn_depthwise_conv2d_nchw":              either("tile_co", packed(nchw, true), planes),
	"dense_pack.x86":                             dense,
	"batch_matmul.x86":                           tvmProducts,
	"topi_nn_batch_matmul":                       tvmProducts,
}

// kinds lists the kinds of templates that compute direct sums. Depthwise convolutions on ARM have two, with
// different knobs.
var kinds = []string{"", "direct", "contrib_spatial_pack"}

// ofTemplate parses a line of a task. kind is the template's kind in version 0.1, where several kinds share a name.
func ofTemplate(name, kind string, args list, k *knobs) (*measured, error) {
	if name == "dense_nopack.x86" {
		return nil, refuse(Structure, "%s, which has terms of one sum in a vector: tiles here have results there", name)
	}
	read, known := templates[name]
	if !known || !slices.Contains(kinds, kind) {
		return nil, refuse(Unknown, "%s", strings.TrimSpace(name+" "+kind))
	}
	return read(args, k)
}

// either handles a name shared by two templates, of which only the first has a knob.
func either(knob string, with, without template) template {
	return func(args list, k *knobs) (*measured, error) {
		if k.has(knob) {
			return with(args, k)
		}
		return without(args, k)
	}
}

// blocked is TVM's convolution in NCHWc on x86. A task of the parallel loop is a row of a block of channels, or
// tile_oh rows of a 1x1 window:
//
//	parallel (batch, tile_oc's outer, rows)
//	  tile_ow's outer
//	    tile_ic's outer, kernel rows, kernel columns, tile_ic's inner      unroll_kw: columns written out
//	      tile_ow's inner x tile_oc's inner                                unrolled, vectorized
//
// That of a depthwise convolution has no tile_ic in its loops.
func blocked(depthwise bool) template {
	return func(args list, k *knobs) (*measured, error) {
		if !k.has("tile_oc", "tile_ow") {
			return nil, refuse(Unknown, "a convolution without the knobs tile_oc and tile_ow")
		}
		c, err := readConvolution(args, nchw, depthwise)
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(c.layout, nchw) {
			return nil, refuse(OtherLayout, "%s", c.layout)
		}
		t := searchspace.Tiling{
			Channels: k.inner("tile_oc", 0), Columns: k.inner("tile_ow", 0), Rows: max(1, k.number("tile_oh")),
			ChannelTiles: 1, RowTiles: 1, Outside: searchspace.ChannelsOutside,
		}
		if columns := k.splits["tile_ow"]; len(columns) == 2 && columns[0] > 0 {
			t.ColumnTiles = columns[0]
		}
		if window := c.weights[2] > 1 || c.weights[3] > 1; window {
			t.Unroll = 1
			if k.on("unroll_kw") {
				t.Unroll = c.weights[3]
			}
			if !depthwise {
				t.Reduce = k.inner("tile_ic", 0)
			}
		}
		return c.measured(t), nil
	}
}

// packed is TVM's spatial packing on ARM:
//
//	parallel tile_co's outer
//	  tile_oh's outer, tile_ow's outer
//	    channels, kernel rows, kernel columns                              ann_reduce: the last two written out
//	      tile_oh's inner x tile_ow's inner x tile_co's inner
func packed(layout string, depthwise bool) template {
	return func(args list, k *knobs) (*measured, error) {
		if !k.has("tile_co", "tile_oh", "tile_ow") {
			return nil, refuse(Unknown, "a convolution without the knobs tile_co, tile_oh and tile_ow")
		}
		c, err := readConvolution(args, layout, depthwise)
		if err != nil {
			return nil, err
		}
		t := searchspace.Tiling{
			Channels: k.inner("tile_co", 0), Columns: k.inner("tile_ow", 0), Rows: k.inner("tile_oh", 0),
			ChannelTiles: 1, Unroll: unrolled(k.others["ann_reduce"], c.weights[2], c.weights[3]), Outside: searchspace.ChannelsOutside,
		}
		return c.measured(t), nil
	}
}

// planes is TVM's first depthwise convolution on ARM:
//
//	parallel tile_c's outer
//	  tile_h's outer, tile_w's outer
//	    kernel rows, kernel columns
//	      tile_h's inner x tile_w's inner x tile_c's inner                 ann: unrolled, vectorized
func planes(args list, k *knobs) (*measured, error) {
	if !k.has("tile_c", "tile_h", "tile_w") {
		return nil, refuse(Unknown, "a depthwise convolution without the knobs tile_c, tile_h and tile_w")
	}
	c, err := readConvolution(args, nchw, true)
	if err != nil {
		return nil, err
	}
	return c.measured(searchspace.Tiling{
		Channels: k.inner("tile_c", 0), Columns: k.inner("tile_w", 0), Rows: k.inner("tile_h", 0),
		ChannelTiles: 1, Outside: searchspace.ChannelsOutside,
	}), nil
}

// unrolled returns how many steps of loops over a kernel's rows and columns the annotations unroll.
func unrolled(annotations json.RawMessage, rows, columns int64) int64 {
	var of []string
	if json.Unmarshal(annotations, &of) != nil || len(of) != 2 || of[1] != "unroll" {
		return 0
	}
	if of[0] == "unroll" && rows > 0 && rows < seedsMaxExtent {
		columns *= rows
	}
	return columns
}

// dense is TVM's product with packed weights on x86:
//
//	parallel (tile_x's outer, tile_y's outer)
//	  tile_y's middle, tile_x's middle
//	    tile_k's outer, tile_k's inner                                     the inner one written out
//	      tile_y's inner x tile_x's inner                                  unrolled, vectorized
func dense(args list, k *knobs) (*measured, error) {
	if !k.has("tile_x", "tile_y", "tile_k") || len(k.splits["tile_y"]) != 3 || len(k.splits["tile_x"]) != 3 {
		return nil, refuse(Structure, "a dense layer without tiles of three levels")
	}
	data, weights, err := operands(args)
	if err != nil {
		return nil, err
	}
	if len(weights) == 3 { // blocked by outputs
		if weights[0] > seedsMaxExtent || weights[2] > seedsMaxExtent {
			return nil, refuse(OutOfBounds, "%v", weights)
		}
		weights = []int64{weights[0] * weights[2], weights[1]}
	}
	if len(data) != 2 || len(weights) != 2 || data[1] != weights[1] {
		return nil, refuse(OtherLayout, "data of %v and weights of %v", data, weights)
	}
	m, n, depth := data[0], weights[0], data[1]
	return &measured{
		key: fmt.Sprint("dense ", m, n, depth),
		tiling: searchspace.Tiling{
			Channels: k.inner("tile_x", 0), Columns: k.inner("tile_y", 0), ChannelTiles: k.inner("tile_x", 1), RowTiles: 1,
			ColumnTiles: k.inner("tile_y", 1), Unroll: k.inner("tile_k", 0), Outside: searchspace.ChannelsOutside,
		},
		make: func() ([]*Operator, error) { return one(Dense(m, n, depth)) },
	}, nil
}

// tvmProducts are TVM's products of matrices on x86, whose partial sums (rfactor) say nothing of a tile:
//
//	parallel (batch, tile_y's outer, tile_x's outer)
//	  tile_k's inner, tile_k's outer
//	    tile_y's inner x tile_x's inner                                    vectorized
func tvmProducts(args list, k *knobs) (*measured, error) {
	if !k.has("tile_x", "tile_y", "tile_k") {
		return nil, refuse(Unknown, "products of matrices without the knobs tile_x, tile_y and tile_k")
	}
	a, b, err := operands(args)
	if err != nil {
		return nil, err
	}
	var swapsA bool
	swapsB := true
	args.read(4, &swapsA)
	args.read(5, &swapsB)
	if swapsA || len(a) != 3 || len(b) != 3 || a[0] != b[0] {
		return nil, refuse(OtherLayout, "operands of %v and %v", a, b)
	}
	n, depth := b[2], b[1]
	if swapsB {
		n, depth = b[1], b[2]
	}
	if depth != a[2] {
		return nil, refuse(OtherLayout, "operands of %v and %v", a, b)
	}
	return &measured{
		key: fmt.Sprint("products ", a, n, swapsB),
		tiling: searchspace.Tiling{
			Channels: k.inner("tile_x", 0), Columns: k.inner("tile_y", 0), ChannelTiles: 1, RowTiles: 1, ColumnTiles: 1,
			Outside: searchspace.PositionsOutside,
		},
		make: func() ([]*Operator, error) { return one(Products(a[0], a[1], n, depth, swapsB)) },
	}, nil
}

func one(o *Operator, err error) ([]*Operator, error) { return []*Operator{o}, err }

// RefusalReason is why a line of a log is not a seed.
type RefusalReason string

// Reasons.
const (
	Malformed     RefusalReason = "malformed line"
	TooLong       RefusalReason = "line too long"
	OtherFormat   RefusalReason = "line of another format"
	Failed        RefusalReason = "failed measurement"
	GPUTarget     RefusalReason = "GPU target"
	OtherTarget   RefusalReason = "other target"
	Unknown       RefusalReason = "unknown operator or template"
	OtherLayout   RefusalReason = "other layout"
	OtherType     RefusalReason = "other element type than float32"
	Structure     RefusalReason = "other structure of loops"
	Ambiguous     RefusalReason = "ambiguous shapes"
	Undefined     RefusalReason = "operator of a program, which the log does not define"
	OutOfBounds   RefusalReason = "shapes out of bounds"
	TooManyOthers RefusalReason = "too many operators"
)

// refusal is the error of a line that is not a seed.
type refusal struct {
	reason RefusalReason
	detail string
}

// Error returns the reason with its detail.
func (r *refusal) Error() string {
	if r.detail == "" {
		return string(r.reason)
	}
	return string(r.reason) + ": " + r.detail
}

// maxDetail bounds the quoted part of a line.
const maxDetail = 120

func refuse(reason RefusalReason, format string, args ...any) error {
	detail := fmt.Sprintf(format, args...)
	if len(detail) > maxDetail {
		detail = fmt.Sprintf("%.*s...", maxDetail, detail)
	}
	return &refusal{reason, printable(detail)}
}

// printable removes control characters.
func printable(text string) string {
	clean := []rune(text)
	for i, r := range clean {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			clean[i] = '?'
		}
	}
	return string(clean)
}

// Refused counts the lines refused for one reason.
type Refused struct {
	Reason RefusalReason
	Count  int
	// Line is the number of the first such line, and Detail quotes it.
	Line   int
	Detail string
}

// refusals counts lines by reason.
type refusals map[RefusalReason]*Refused

func (r refusals) add(line int, err *refusal) {
	if r[err.reason] == nil {
		r[err.reason] = &Refused{Reason: err.reason, Line: line, Detail: err.detail}
	}
	r[err.reason].Count++
}

// list returns the refusals, most frequent first.
func (r refusals) list() (all []Refused) {
	for _, one := range r {
		all = append(all, *one)
	}
	slices.SortFunc(all, func(a, b Refused) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Line, b.Line)) })
	return all
}
