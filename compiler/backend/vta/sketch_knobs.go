package vta

import (
	"errors"
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// Values of the knob order.
const (
	channelsOutside = iota
	positionsOutside
)

// family returns the schedules of the tile.
func (x *tile) family() searchspace.Family {
	type p = parameters
	open := []searchspace.Parameter[p]{
		sketch.Knob("th", func(p *p) *int64 { return &p.rows }, divisors(x.extent(2))...),
		sketch.Knob("tw", func(p *p) *int64 { return &p.columns }, divisors(x.extent(1))...),
		sketch.Knob("tk", func(p *p) *int64 { return &p.channels }, sketch.AtMost(sketch.CeilDiv(x.channels, block), 1, 2, 3, 4, 6, 8, 12, 16, 24, 32)...),
		sketch.Knob("tc", func(p *p) *int64 { return &p.depth }, divisors(sketch.CeilDiv(x.terms, block))...),
		sketch.Knob("slots", func(p *p) *int64 { return &p.slots }, 1, 2, 3),
		sketch.Knob("order", func(p *p) *int64 { return &p.order }, channelsOutside, positionsOutside),
		sketch.Knob("resident", func(p *p) *int64 { return &p.resident }, 0, 1),
	}
	fixed := p{rows: 1, columns: 1, channels: 1, depth: 1, slots: 1}
	good := []searchspace.Candidate[p]{{By: searchspace.Direct, Parameters: fixed}}
	return &searchspace.Sketch[p]{Open: searchspace.WithChoices(open), Fixed: fixed, Good: good,
		Variants: []searchspace.Variant[p]{{By: searchspace.Direct, Structure: x}}}
}

// extent returns the number of positions along an axis counted from the last one, 1; missing axes have one.
func (x *tile) extent(fromLast int) int64 {
	if k := len(x.positions) - fromLast; k >= 0 {
		return x.positions[k]
	}
	return 1
}

// maxTile limits the positions along an axis of a tile. The scratchpad of sums has no room for more.
const maxTile = 2048

// divisors returns the divisors of n up to maxTile.
func divisors(n int64) (list []int64) {
	for d := int64(1); d <= min(n, maxTile); d++ {
		if n%d == 0 {
			list = append(list, d)
		}
	}
	return list
}

// probe lowers a small tile to find out whether the accelerator has instructions for the whole workload, and how many
// its epilogue takes.
func (x *tile) probe(space *searchspace.Space) error {
	seeds := space.Seeds()
	if len(seeds) == 0 {
		return errors.New("no tile fits the scratchpads")
	}
	s, err := space.Apply(seeds[0])
	if err != nil {
		return err
	}
	p, err := lowered(s)
	if err != nil {
		return err
	}
	x.vectors, x.temporaries = -1, 0 // without the instruction that clears the sums
	ir.Visit(p.Body, func(st ir.Stmt) {
		if c, ok := st.(*ir.Call); ok && c.Meaning != nil && c.Params[0].Use == ir.Write {
			x.vectors++
		}
	})
	for _, b := range p.buffers {
		if b.Tensor.Name[0] == 't' {
			x.temporaries++
		}
	}
	return nil
}

// blocks returns the number of blocks of terms. The last one may be padded with zeros.
func (x *tile) blocks() int64 { return sketch.CeilDiv(x.terms, block) }

// inputElements returns the positions of inputs that a tile reads.
func (x *tile) inputElements(q parameters) int64 {
	n := int64(1)
	for _, d := range x.extents {
		n *= d.along(x.along(d.axis, q))
	}
	return n
}

// along returns the positions of a tile along an axis.
func (x *tile) along(axis int, q parameters) int64 {
	switch {
	case axis < 0:
		return 1
	case axis == len(x.positions)-1:
		return q.columns
	case axis == len(x.positions)-2:
		return q.rows
	}
	return 1
}

// Legal implements searchspace.Structure.
func (x *tile) Legal(q parameters) error {
	used := [len(scratchpads)]int64{}
	take := func(m memory, bytes, slots int64) { used[m] += sketch.CeilDiv(bytes, alignBytes) * alignBytes * slots }
	elements := q.rows * q.columns * q.channels * block
	depth := q.depth
	if q.resident == 1 {
		depth = x.blocks()
		if q.order == positionsOutside {
			return errors.New("space: weights stay only while positions change")
		}
	}
	take(inputs, x.inputElements(q)*q.depth*block, q.slots)
	take(weights, sketch.Product(x.window)*depth*block*q.channels*block, q.slots)
	take(sums, elements*array.Int32.Bytes()*(1+x.temporaries), 1)
	for _, t := range x.reads {
		n := q.channels * block
		if len(t.Shape) > 1 {
			n = elements
		}
		take(sums, n*t.DType.Bytes(), q.slots)
	}
	take(results, elements*x.resultBytes, q.slots)
	for m, bytes := range used {
		if bytes > scratchpads[m] {
			return fmt.Errorf("space: a tile takes %d bytes of the scratchpad %s, which has %d", bytes, names[m], scratchpads[m])
		}
	}
	return nil
}

// packing returns the layout of weights: tiles of channels, each with all of its terms.
func (x *tile) packing(q parameters) (dims []schedule.PackDim) {
	last := len(x.window) + 1
	dims = append(dims, schedule.PackDim{Dim: last, Factor: q.channels * block})
	for k := range last {
		dims = append(dims, schedule.PackDim{Dim: k})
	}
	return append(dims, schedule.PackDim{Dim: last, Factor: q.channels * block, Inner: true})
}
