package cost

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/backend/gpu/machine"
)

// Cycles are about how many cycles a launch takes, and what for.
type Cycles struct {
	// Arithmetic, Matrix, Shared and Global are what a block's work takes of a multiprocessor's lanes, its tensor
	// cores, its shared memory, and its part of global memory, if nothing else were to be done.
	Arithmetic, Matrix, Shared, Global float64
	// Wait is what a block waits for operands in all of its steps while nothing of its own is computed.
	Wait float64
	// Residents is how many blocks a multiprocessor has at a time, Waves how many tiles each of these computes, or the
	// blocks that follow them; the last wave may be a part of one.
	Residents, Waves float64
	// Tail is how much longer the launch takes than if all multiprocessors ended at once.
	Tail float64
	// Total is the launch from its beginning to its end.
	Total float64
}

// Busiest is the longest of what a block's work takes.
func (c *Cycles) Busiest() float64 { return max(c.Arithmetic, c.Matrix, c.Shared, c.Global) }

// Cycles estimates the time of a launch: blocks that are held together share a multiprocessor, and one computes while
// another waits.
func (a *Analysis) Cycles(l *Launch) Cycles {
	held := machine.Residents(a.GPU, l.Threads, l.Registers, l.SharedBytes)
	processors := float64(a.GPU.Multiprocessors)
	c := Cycles{
		Arithmetic: (l.Operations.Slots() + l.Instructions()) / machine.Lanes,
		Matrix:     l.Matrix * l.MatrixBits / machine.MatrixBits,
		Shared:     l.Local.Units,
		Global:     machine.Traffic((l.Global.Units+l.Stored.Units)*sectorBytes, a.Bytes/float64(l.Blocks)),
		Residents:  math.Min(float64(held), math.Ceil(float64(l.Blocks)/processors)),
		Waves:      float64(l.Blocks) / (float64(held) * processors),
		Tail:       1,
	}
	rounds := math.Ceil(c.Waves)
	if l.Tiles != l.Blocks { // of blocks that walk, each begins once
		share := float64(l.Tiles) / float64(l.Blocks)
		c.Waves, c.Tail = max(1, c.Waves)*share, l.Most/share
	} else {
		c.Tail = rounds / c.Waves
	}
	work := c.Busiest() * l.uneven()
	if busy := c.Residents * l.Warps(); busy < machine.BusyWarps {
		work *= machine.BusyWarps / busy
	}
	steps := max(1, l.Steps)
	c.Wait = steps * max(0, machine.Latency-float64(l.Stages-1)*work/steps)
	c.Total = rounds*(max(work*c.Residents, work+c.Wait)+machine.Latency*l.Begun) + machine.Launch
	return c
}

// uneven is how much more the block has to do that has most than an average one.
func (l *Launch) uneven() float64 {
	if l.Tiles == l.Blocks {
		return 1
	}
	return l.Most * float64(l.Blocks) / float64(l.Tiles)
}

// Total is about how many cycles all launches take.
func (a *Analysis) Total() (cycles float64) {
	for _, l := range a.Launches {
		cycles += a.Cycles(l).Total
	}
	return cycles
}

// Warps is how many warps a block has.
func (l *Launch) Warps() float64 { return float64((l.Threads + width - 1) / width) }

// Instructions is how many instructions threads issue for what they load, store and copy.
func (l *Launch) Instructions() float64 {
	return (l.Global.Requests+l.Stored.Requests+l.Local.Requests)*width + copyInstructions*l.Copies
}

// copyInstructions is what a copy takes besides its access of either memory.
const copyInstructions = 2
