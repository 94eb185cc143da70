package space

import (
	"fmt"
	"math"

	"github.com/tilth-dev/tilth/compiler/target"
)

func (x *strassen) knobs(*target.Target) []Knob {
	vectors := x.n() / x.lanes
	return []Knob{
		{"st", atMost(x.m, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14)},
		{"sv", atMost(vectors, 1, 2, 3, 4, 6)},
		{"sb", atMost(x.m, 1, 2, 4, 8, 16, 1024)},
		{"sku", atMost(x.k, 1, 2, 4, 8)},
		{"spf", []int64{0, 512, 1024, 2048, 4096}},
	}
}

// algorithms is the value of the knob that chooses this sketch.
func (x *strassen) algorithms() []int64 { return []int64{seven} }

// seeds are register tiles that are known to be good.
func (x *strassen) seeds(registers int) []string {
	tiles := []string{"st=4 sv=3", "st=5 sv=2", "st=6 sv=2", "st=4 sv=2"}
	if registers >= 32 {
		tiles = []string{"st=14 sv=2", "st=7 sv=4", "st=8 sv=3", "st=6 sv=4", "st=4 sv=6", "st=4 sv=4"}
	}
	var seeds []string
	for _, t := range tiles {
		seeds = append(seeds, fmt.Sprintf("%s=%d %s sb=1024 sku=2 spf=1024", algKnob, seven, t))
	}
	return seeds
}

// legal keeps the register tile within the register file and the unrolled code small, as tile.legal does.
func (x *strassen) legal(t *target.Target, set settings) error {
	z := x.sizes(set)
	acc := z.rows * z.vectors
	need := acc + z.vectors
	if !t.Has("avx512f") {
		need++
	}
	if regs := int64(t.VectorRegisters); need > regs {
		return fmt.Errorf("space: tile %dx%d of the products needs %d vector registers of %d", z.rows, z.vectors, need, regs)
	}
	if acc*z.ku > maxUnrolled {
		return fmt.Errorf("space: tile %dx%d unrolled %d times is too much code", z.rows, z.vectors, z.ku)
	}
	return nil
}

func (x *strassen) cost(t *target.Target, set settings) float64 { return math.Inf(1) }
