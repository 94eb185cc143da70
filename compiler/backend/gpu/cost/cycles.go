package cost

import (
	"math"
)

// Cycles estimates how many cycles a launch takes, and why.
type Cycles struct {
	// Arithmetic, Matrix, Shared and Global are the cycles of a block's work on a multiprocessor's lanes, its tensor
	// cores, its shared memory, and its share of global memory, each in isolation.
	Arithmetic, Matrix, Shared, Global float64
	// Wait is the time that a block waits for operands in all its steps without computing.
	Wait float64
	// Residents is the number of concurrent blocks per multiprocessor, Waves the number of tiles that each of them or
	// its successors compute. The last wave may be partial.
	Residents, Waves float64
	// Tail is the additional time of the launch compared with all multiprocessors ending at once.
	Tail float64
	// Total is the time of the launch from start to end.
	Total float64
}

// Busiest returns the maximum of the cycles of a block's work.
func (c *Cycles) Busiest() float64 { return max(c.Arithmetic, c.Matrix, c.Shared, c.Global) }

// Cycles estimates the time of a launch. Resident blocks share a multiprocessor, and one computes while another waits.
func (a *Analysis) Cycles(l *Launch) Cycles {
	held := Residents(a.GPU, l.Threads, l.Registers, l.SharedBytes)
	processors := float64(a.GPU.Multiprocessors)
	c := Cycles{
		Arithmetic: (l.Operations.Slots() + l.Instructions()) / Lanes,
		Matrix:     l.Matrix * l.MatrixBits / MatrixBits,
		Shared:     l.Local.Units,
		Global:     TrafficCycles((l.Global.Units+l.Stored.Units)*sectorBytes, a.Bytes/float64(l.Blocks)),
		Residents:  math.Min(float64(held), math.Ceil(float64(l.Blocks)/processors)),
		Waves:      float64(l.Blocks) / (float64(held) * processors),
		Tail:       1,
	}
	rounds := math.Ceil(c.Waves)
	if l.Tiles != l.Blocks { // persistent blocks start once each
		share := float64(l.Tiles) / float64(l.Blocks)
		c.Waves, c.Tail = max(1, c.Waves)*share, l.Max/share
	} else {
		c.Tail = rounds / c.Waves
	}
	work := c.Busiest() * l.uneven()
	if busy := c.Residents * l.Warps(); busy < BusyWarps {
		work *= BusyWarps / busy
	}
	steps := max(1, l.Steps)
	c.Wait = steps * max(0, Latency-float64(l.Stages-1)*work/steps)
	c.Total = rounds*(max(work*c.Residents, work+c.Wait)+Latency*l.Begun) + LaunchCycles
	return c
}

// uneven returns the maximum work of a block relative to the average.
func (l *Launch) uneven() float64 {
	if l.Tiles == l.Blocks {
		return 1
	}
	return l.Max * float64(l.Blocks) / float64(l.Tiles)
}

// Total returns the approximate number of cycles of all launches.
func (a *Analysis) Total() (cycles float64) {
	for _, l := range a.Launches {
		cycles += a.Cycles(l).Total
	}
	return cycles
}

// Warps returns how many warps a block has.
func (l *Launch) Warps() float64 { return float64((l.Threads + width - 1) / width) }

// Instructions returns how many instructions threads issue for loads, stores and copies.
func (l *Launch) Instructions() float64 {
	return (l.Global.Requests+l.Stored.Requests+l.Local.Requests)*width + copyInstructions*l.Copies
}

// copyInstructions is the number of instructions of a copy beside its access to either memory.
const copyInstructions = 2
