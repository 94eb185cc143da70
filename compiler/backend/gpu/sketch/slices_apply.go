package sketch

import (
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// Apply implements searchspace.Structure.
func (p *sums) Apply(s *schedule.Schedule, q slicesParameters) (err error) {
	defer sketch.Catch(&err)
	b := &sketch.Builder{S: s}
	for _, f := range p.unit.Feeds {
		Alone(b, f)
	}
	x := slicing{Unit: p.unit, last: p.last, step: p.step, along: p.along, side: q.side, across: q.across, unroll: q.unroll}
	if q.parts > 1 {
		p.divide(b, &x, q.parts)
	}
	x.apply(b)
	return nil
}

// divide makes partial sums a unit of their own, and makes threads add them up in a later launch.
func (p *sums) divide(b *sketch.Builder, x *slicing, parts int64) {
	part, length := schedule.Planes, sketch.CeilDiv(p.extent, parts)
	if p.few { // neighbouring threads add up adjacent parts
		part = schedule.Pieces
	}
	partial := sketch.Get(b.S.RFactor(p.unit.Acc, p.step, length, part))
	acc := sketch.Get(b.S.CacheWrite(partial))
	x.Unit = sketch.Unit{Out: partial, Acc: acc}
	if !p.few {
		x.last++
	}
	p.addParts(b, sketch.CeilDiv(p.extent, length))
}

// addParts makes threads add up the parts of each sum.
func (p *sums) addParts(b *sketch.Builder, parts int64) {
	x := slicing{Unit: p.unit, last: p.last, along: true, side: 128, across: p.adders(parts), unroll: 1}
	switch {
	case x.across > 1:
		x.side = 1
	case p.few:
		x.unroll = ahead
	}
	x.apply(b)
}
