package vta

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Clock implements backend.Backend.
func (Backend) Clock(*target.Target) float64 { return clock }

// copyTime returns the cycles of a copy of runs of contiguous bytes.
func copyTime(runs, bytes int64) float64 {
	return copyCycles + float64(runs)*float64(burstCycles+sketch.CeilDiv(bytes, beatBytes))
}

// computeTime returns the cycles of an instruction of some steps.
func computeTime(steps int64) float64 { return computeCycles + float64(steps) }

// Cost implements searchspace.Structure. With one slot, a step waits for its copies; with more, the busiest unit
// determines the time, beside what comes before the first step and after the last one.
func (x *tile) Cost(q parameters) float64 {
	tiles := array.Elements(x.positions) / (q.rows * q.columns)
	channels := sketch.CeilDiv(x.channels, q.channels*block)
	steps := x.blocks() / q.depth
	rows := q.rows * q.columns * q.channels
	load := x.inputTime(q)
	resident := 0.0
	if t := x.weightTime(q); q.resident == 0 {
		load += t
	} else {
		resident = t
	}
	product := computeTime(rows * sketch.Product(x.window) * q.depth)
	n := float64(tiles * channels)
	operands, operandsPerChannel := x.operandTime(q)
	loads := n*(float64(steps)*load+operands) + float64(channels)*(resident+operandsPerChannel)
	computes := n * (float64(steps)*product + float64(1+x.vectors)*computeTime(rows))
	stores := n * x.storeTime(q)
	if q.slots == 1 {
		return loads + computes
	}
	ends := resident + load + float64(x.vectors)*computeTime(rows) + x.storeTime(q)
	return max(loads, computes, stores) + ends
}

// inputTime returns the cycles of loading the inputs of a step.
func (x *tile) inputTime(q parameters) float64 {
	runs, run, whole := int64(1), q.depth*block, x.depthIsWhole(q)
	for k := len(x.extents) - 1; k >= 0; k-- {
		d := x.extents[k]
		n := d.along(x.along(d.axis, q))
		if whole {
			run *= n
		} else {
			runs *= n
		}
		whole = whole && x.along(d.axis, q) == x.positionsAlong(d.axis) && d.window == 1 && d.advance == 1
	}
	return copyTime(runs, run)
}

// depthIsWhole reports whether a step has all terms, which are then contiguous for neighbouring inputs.
func (x *tile) depthIsWhole(q parameters) bool { return q.depth*block == x.terms }

// positionsAlong returns all positions along an axis.
func (x *tile) positionsAlong(axis int) int64 {
	if axis < 0 {
		return 1
	}
	return x.positions[axis]
}

// weightTime returns the cycles of loading the weights of a step, or, if they are resident, of all steps.
func (x *tile) weightTime(q parameters) float64 {
	window, column := sketch.Product(x.window), q.channels*block
	if q.resident == 1 || q.depth == x.blocks() {
		return copyTime(1, window*x.blocks()*block*column)
	}
	return copyTime(window, q.depth*block*column)
}

// operandTime returns the cycles of loading the epilogue's operands of a tile, and of those that a tile of channels
// shares.
func (x *tile) operandTime(q parameters) (each, shared float64) {
	for _, t := range x.reads {
		column := q.channels * block * t.DType.Bytes()
		switch {
		case len(t.Shape) > 1:
			each += copyTime(q.rows*q.columns, column)
		case q.order == positionsOutside:
			each += copyTime(1, column)
		default:
			shared += copyTime(1, column)
		}
	}
	return each, shared
}

// storeTime returns the cycles of storing the results of a tile.
func (x *tile) storeTime(q parameters) float64 {
	column := min(q.channels*block, x.channels) * x.resultBytes
	if q.channels*block == x.channels {
		return copyTime(q.rows, q.columns*column)
	}
	return copyTime(q.rows*q.columns, column)
}
