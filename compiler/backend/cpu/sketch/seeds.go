package sketch

import "slices"

// Seeds are the hand-written register tiles that are known to be good on each register file, in several cache
// blockings.
func (k *sketches) Seeds() (texts []string) {
	u := k.plan.heaviest()
	if u == nil {
		return nil
	}
	registers, vectorBytes := k.target.CPU.VectorRegisters, k.target.CPU.VectorBytes
	switch x := u.sketch.(type) {
	case *tile:
		tiles, settings := tilesFor(registers, vectorBytes), blockings
		if x.loadsOwn {
			tiles, settings = append(tiles, windowTiles...), slices.Concat(windowBlockings, blockings)
		}
		for _, t := range tiles {
			for _, rest := range settings {
				texts = append(texts, t+" "+rest, t+" "+rest+" joint=1")
			}
		}
		if k.other() != nil {
			texts = append(texts, u.other.seeds(registers)...)
		}
	case *attention:
		texts = attentionSeeds(registers, vectorBytes)
	}
	return texts
}

// tilesFor has the register tiles for a register file: rows x columns x vectors of accumulators.
func tilesFor(registers, vectorBytes int) []string {
	switch {
	case registers >= 32 && vectorBytes >= 64: // AVX-512
		return []string{
			"tw=14 tv=2 th=1", "tw=7 tv=4 th=1", "tw=6 tv=4 th=1", "tw=4 tv=6 th=1", "tw=28 tv=1 th=1", "tw=12 tv=2 th=1",
			"tw=7 tv=2 th=2", "tw=4 tv=4 th=1", "tw=8 tv=3 th=1", "tw=7 tv=1 th=4", "tw=1 tv=8 th=1",
		}
	case registers >= 32: // Neon
		return []string{"tw=8 tv=3 th=1", "tw=6 tv=4 th=1", "tw=12 tv=2 th=1", "tw=7 tv=3 th=1", "tw=4 tv=4 th=1", "tw=4 tv=3 th=2", "tw=1 tv=8 th=1"}
	default: // AVX2
		return []string{
			"tw=6 tv=2 th=1", "tw=4 tv=3 th=1", "tw=3 tv=2 th=2", "tw=2 tv=2 th=3", "tw=2 tv=3 th=2", "tw=1 tv=3 th=4", "tw=12 tv=1 th=1",
			"tw=3 tv=4 th=1", "tw=7 tv=1 th=1", "tw=4 tv=2 th=1", "tw=1 tv=8 th=1",
		}
	}
}

// blockings are settings of the other knobs that belong to them.
var blockings = []string{
	"hb=1024 cb=1 outer=0 inner=1 ku=1 kb=0 pf=1024 feed=1",
	"hb=4 cb=64 outer=0 inner=1 ku=2 kb=0 feed=2 pk=1",
	"hb=8 cb=4 outer=1 inner=0 ku=4 kb=0 pf=2048 feed=1",
	"hb=1 cb=64 outer=0 inner=0 ku=4 kb=64 feed=1",
	"hb=56 cb=2 outer=1 inner=0 ku=9 kb=0 feed=0",
	"hb=14 cb=8 outer=1 inner=1 ku=4 kb=16 pf=1024 feed=2 pk=1",
}

// windowTiles are tiles whose positions share what a window reads and leave registers for it, and windowBlockings
// settings with which the window is written out whole and its borders need no copy.
var (
	windowTiles = []string{
		"tw=2 tv=2 th=2", "tw=2 tv=1 th=4", "tw=1 tv=1 th=4", "tw=3 tv=1 th=2", "tw=2 tv=1 th=2", "tw=7 tv=1 th=1", "tw=4 tv=2 th=1",
		"tw=2 tv=2 th=4", "tw=4 tv=1 th=4",
	}
	windowBlockings = []string{
		"hb=1024 cb=64 outer=1 inner=0 ku=1024 kb=0 pf=0 feed=0",
		"hb=7 cb=8 outer=0 inner=0 ku=1024 kb=0 pf=0 feed=0",
		"hb=4 cb=64 outer=1 inner=0 ku=1024 kb=0 pf=0 feed=0",
	}
)
