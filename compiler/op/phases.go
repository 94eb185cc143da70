package op

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

// phases computes a transposed convolution without inserting zeros. Outputs whose positions are congruent modulo the
// stride form a phase and read the same weights, so each phase is an ordinary convolution with every stride-th weight.
//
// The result's element o, counted from the first position that the padding cuts off, is u = o+pad, and
//
//	y[u] = sum over r with (u - r*dilation) divisible by stride of x[(u - r*dilation) / stride] * w[r]
//
// With o+shift = stride*q + p, phase p at place q reads
//
//	acc[p,q] = sum over t of x[q + (p+rest) floordiv stride - step*(taps-1) + step*t] * w'[p,t],  rest = pad - shift
type phases struct {
	out                      []extent.Extent
	kernel, stride, dilation []int64
	groups, inner, channels  int64
	// For each spatial axis: taps is the number of weights of a phase, step the distance between their inputs,
	// count the number of phases that have weights, places the number of positions of each.
	taps, step, count   []int64
	places, shift, rest []extent.Extent
	// joint is set if the output channels alone would not fill vectors. It is the extent of an axis that combines
	// phases and channels (element phase*channels + channel), rounded up with zeros. If joint is 0, each phase is
	// an axis.
	joint int64
}

// jointChannels is the number of output channels below which phases are vectorized along with them, in multiples of
// jointMultiple. Every phase then reads the same operands, which costs one more place on each axis where the stride
// does not divide the padding.
const jointChannels, jointMultiple = 16, 16

// newPhases splits a transposed window into phases; w is the shape of the weights.
func newPhases(win window, groups int64, w []int64) (*phases, error) {
	p := &phases{out: win.in, kernel: win.kernel, stride: win.stride, dilation: win.dilation}
	p.groups, p.inner, p.channels = groups, w[0]/groups, w[1]*groups
	joint := groups == 1 && p.channels < jointChannels && slices.Max(p.stride) > 1
	for k, pad := range win.padBegin {
		p.addAxis(k, pad, joint)
	}
	if joint {
		p.joint = (array.Elements(p.count)*p.channels + jointMultiple - 1) / jointMultiple * jointMultiple
	}
	if _, err := array.CheckedBytes(array.Float64, p.tapsShape()); err != nil {
		return nil, fmt.Errorf("weights %v, ordered by phase as %v: %w", w, p.tapsShape(), err)
	}
	return p, nil
}

// addAxis splits one axis. Dilation of strided kernels is materialised as zeros, since the phases would read at
// different distances.
func (p *phases) addAxis(k int, pad extent.Extent, joint bool) {
	s, reach := p.stride[k], (p.kernel[k]-1)*p.dilation[k]+1
	taps, step, count, shift := p.kernel[k], p.dilation[k], int64(1), extent.Of(0)
	if s > 1 {
		taps, step, count = (reach+s-1)/s, 1, min(s, reach)
		if joint || count < s { // phase p reads the weights from p on
			shift = pad.Mod(extent.Of(s))
		}
	}
	p.taps, p.step, p.count = append(p.taps, taps), append(p.step, step), append(p.count, count)
	p.shift, p.rest = append(p.shift, shift), append(p.rest, pad.Minus(shift))
	p.places = append(p.places, p.out[k].Plus(shift).CeilOver(extent.Of(s)))
}

// tapsShape returns [phases, taps, input channels of a group, output channels], or [taps, input channels, joint].
func (p *phases) tapsShape() []int64 {
	if p.joint > 0 {
		return append(append([]int64{}, p.taps...), p.inner, p.joint)
	}
	shape := append(append([]int64{}, p.count...), p.taps...)
	return append(shape, p.inner, p.channels)
}

// order returns the weights w[c, oc, r] as taps; places beyond the kernel are zero.
func (p *phases) order(l *Lowering, w Operand) Operand {
	w = l.Readable(w).inMemory()
	shape := p.tapsShape()
	return l.Map("taps", extent.Fixed(shape...), RowMajor(len(shape)), func(i []expr.Expr) expr.Expr {
		c, oc := i[len(i)-2], i[len(i)-1]
		var phase []expr.Expr
		var inside expr.Expr = &expr.Int{Value: 1, Type: trueType}
		if p.joint > 0 {
			inside = expr.Bin(expr.Lt, oc, expr.I(array.Elements(p.count)*p.channels))
			phase, oc = p.separate(oc)
		} else {
			phase, i = i[:len(p.out)], i[len(p.out):]
		}
		if p.groups > 1 {
			perGroup := expr.I(p.channels / p.groups)
			c = expr.AddE(expr.MulE(expr.Bin(expr.FloorDiv, oc, perGroup), expr.I(p.inner)), c)
			oc = expr.Bin(expr.FloorMod, oc, perGroup)
		}
		index := []expr.Expr{c, oc}
		for k := range p.out {
			r, valid := p.weight(l, k, phase[k], i[k])
			index = append(index, r)
			inside = expr.Bin(expr.And, inside, valid)
		}
		return expr.Sel(inside, w.At(index...), expr.Zero(w.DType))
	})
}

// separate splits a position on the joint axis; beyond its last phase, the result is within bounds but meaningless.
func (p *phases) separate(j expr.Expr) (phase []expr.Expr, channel expr.Expr) {
	channel = expr.Bin(expr.FloorMod, j, expr.I(p.channels))
	rest := expr.Bin(expr.FloorDiv, j, expr.I(p.channels))
	phase = make([]expr.Expr, len(p.count))
	for k := len(p.count) - 1; k >= 0; k-- {
		phase[k] = expr.Bin(expr.FloorMod, rest, expr.I(p.count[k]))
		rest = expr.Bin(expr.FloorDiv, rest, expr.I(p.count[k]))
	}
	return phase, channel
}

// weight returns the position in the kernel of tap t of a phase, and the condition that it exists. Taps are in
// input order, the reverse of the kernel's.
func (p *phases) weight(l *Lowering, k int, phase, t expr.Expr) (r, valid expr.Expr) {
	t = expr.SubE(expr.I(p.taps[k]-1), t)
	if p.stride[k] == 1 {
		return t, &expr.Int{Value: 1, Type: trueType}
	}
	first := expr.Bin(expr.FloorMod, expr.AddE(phase, l.Extent(p.rest[k])), expr.I(p.stride[k]))
	at := expr.AddE(first, expr.MulE(t, expr.I(p.stride[k])))
	d, reach := p.dilation[k], (p.kernel[k]-1)*p.dilation[k]+1
	valid = expr.Bin(expr.Lt, at, expr.I(reach))
	if d > 1 {
		valid = expr.Bin(expr.And, valid, expr.Bin(expr.Eq, expr.Bin(expr.FloorMod, at, expr.I(d)), expr.I(0)))
	}
	return expr.Bin(expr.FloorDiv, at, expr.I(d)), valid
}

// first returns the position in x that the first tap of a phase reads at place 0.
func (p *phases) first(k int, phase int64) extent.Extent {
	ahead := extent.Of(phase).Plus(p.rest[k]).Over(extent.Of(p.stride[k]))
	return ahead.Minus(extent.Of(p.step[k] * (p.taps[k] - 1)))
}

// reach returns the padding or cropping of x, for padSpatial, to the range that the phases read.
func (p *phases) reach() (begin, sizes []extent.Extent) {
	for k := range p.out {
		first, last := p.first(k, 0), p.first(k, p.count[k]-1)
		begin = append(begin, extent.Of(0).Minus(first))
		sizes = append(sizes, last.Minus(first).Plus(p.places[k]).Plus(extent.Of(p.step[k]*(p.taps[k]-1))))
	}
	return begin, sizes
}

// ahead returns the input offset of a phase relative to phase 0.
func (p *phases) ahead(l *Lowering, k int, phase expr.Expr) expr.Expr {
	if p.first(k, 0) == p.first(k, p.count[k]-1) {
		return expr.I(0)
	}
	s := p.stride[k]
	rest := p.rest[k].Mod(extent.Of(s))
	return expr.Bin(expr.FloorDiv, expr.AddE(phase, l.Extent(rest)), expr.I(s))
}

// lower computes every phase, and the result from them; w holds ordered taps, all the node's operands.
func (p *phases) lower(l *Lowering, n *Node, x, w Operand, all []Operand) Operand {
	begin, sizes := p.reach()
	x = l.padSpatial(x, begin, sizes, expr.Zero(x.DType))
	acc := p.sum(l, n.Out.Shape.At(0), x, w)
	return addBias(l, n, p.interleave(l, n, acc), all, 2)
}

// sum has the axes N, joint and the places; or N, channels, phases and places. Channels are last in memory.
func (p *phases) sum(l *Lowering, batch extent.Extent, x, w Operand) Operand {
	rank := len(p.out)
	depthwise := p.inner == 1 && p.groups > 1 && p.groups == p.channels
	extents := append([]int64{}, p.taps...)
	if !depthwise {
		extents = append(extents, p.inner)
	}
	planes := append([]int64{p.channels}, p.count...)
	if p.joint > 0 {
		planes = []int64{p.joint}
	}
	shape := extent.Concat(extent.ShapeOf(batch), extent.Fixed(planes...), extent.ShapeOf(p.places...))
	return l.Reduce("phases", expr.Sum, shape, ChannelsLast(shape.Rank()), extent.Fixed(extents...), func(i, r []expr.Expr) expr.Expr {
		place := i[len(i)-rank:]
		phase := i[2 : len(i)-rank]
		c, xc := expr.I(0), i[1]
		if !depthwise {
			c, xc = r[rank], p.channel(i[1], r[rank])
		}
		xi := []expr.Expr{i[0], xc}
		for k := range rank {
			at := expr.AddE(place[k], expr.MulE(r[k], expr.I(p.step[k])))
			if p.joint == 0 {
				at = expr.AddE(at, p.ahead(l, k, phase[k]))
			}
			xi = append(xi, at)
		}
		wi := append(append(append([]expr.Expr{}, phase...), r[:rank]...), c, i[1])
		return expr.MulE(wide(x.At(xi...)), wide(w.At(wi...)))
	})
}

// channel returns the input channel for channel c of the group of output channel oc.
func (p *phases) channel(oc, c expr.Expr) expr.Expr {
	if p.groups == 1 {
		return c
	}
	group := expr.Bin(expr.FloorDiv, oc, expr.I(p.channels/p.groups))
	return expr.AddE(expr.MulE(group, expr.I(p.inner)), c)
}

// interleave reads each element of the result from its phase; it is zero in a phase without weights.
func (p *phases) interleave(l *Lowering, n *Node, acc Operand) Operand {
	t := Type{acc.DType, n.Out.Shape}
	return l.Lazy(t, ChannelsLast(t.Shape.Rank()), func(i []expr.Expr) expr.Expr {
		var phase, place []expr.Expr
		var inside expr.Expr = &expr.Int{Value: 1, Type: trueType}
		for k := range p.out {
			o := expr.AddE(i[2+k], l.Extent(p.shift[k]))
			at := expr.Bin(expr.FloorMod, o, expr.I(p.stride[k]))
			if p.count[k] < p.stride[k] {
				inside = expr.Bin(expr.And, inside, expr.Bin(expr.Lt, at, expr.I(p.count[k])))
			}
			phase = append(phase, at)
			place = append(place, expr.Bin(expr.FloorDiv, o, expr.I(p.stride[k])))
		}
		index := append([]expr.Expr{i[0], i[1]}, phase...)
		if p.joint > 0 {
			index = []expr.Expr{i[0], p.together(phase, i[1])}
		}
		return expr.Sel(inside, acc.At(append(index, place...)...), expr.Zero(acc.DType))
	})
}

// together returns the position on the joint axis.
func (p *phases) together(phase []expr.Expr, channel expr.Expr) expr.Expr {
	j := expr.I(0)
	for k, e := range phase {
		j = expr.AddE(expr.MulE(j, expr.I(p.count[k])), e)
	}
	return expr.AddE(expr.MulE(j, expr.I(p.channels)), channel)
}
