package sketch

import "github.com/tilth-dev/tilth/compiler/space"

// seeds are the hand-written register tiles that are known to be good on each register file, in several cache
// blockings.
func (x *tile) seeds() (list []space.Candidate[tileParameters]) {
	tiles, rest := tilesFor(x.target.CPU.VectorRegisters, x.target.CPU.VectorBytes), blockings()
	if x.loadsOwn {
		tiles, rest = append(tiles, windowTiles()...), append(windowBlockings(), rest...)
	}
	for _, t := range tiles {
		for _, p := range rest {
			p.rows, p.columns, p.vectors = t.rows, t.columns, t.vectors
			list = append(list, space.Candidate[tileParameters]{By: space.Direct, Parameters: p})
			p.joint = 1
			list = append(list, space.Candidate[tileParameters]{By: space.Direct, Parameters: p})
		}
	}
	return list
}

// accumulators are rows x columns x vectors that a tile keeps in registers.
type accumulators struct{ rows, columns, vectors int64 }

// tilesFor has the register tiles for a register file.
func tilesFor(registers, vectorBytes int) []accumulators {
	switch {
	case registers >= 32 && vectorBytes >= 64: // AVX-512
		return []accumulators{
			{1, 14, 2}, {1, 7, 4}, {1, 6, 4}, {1, 4, 6}, {1, 28, 1}, {1, 12, 2},
			{2, 7, 2}, {1, 4, 4}, {1, 8, 3}, {4, 7, 1}, {1, 1, 8},
		}
	case registers >= 32: // Neon
		return []accumulators{{1, 8, 3}, {1, 6, 4}, {1, 12, 2}, {1, 7, 3}, {1, 4, 4}, {2, 4, 3}, {1, 1, 8}}
	default: // AVX2
		return []accumulators{
			{1, 6, 2}, {1, 4, 3}, {2, 3, 2}, {3, 2, 2}, {2, 2, 3}, {4, 1, 3},
			{1, 12, 1}, {1, 3, 4}, {1, 7, 1}, {1, 4, 2}, {1, 1, 8},
		}
	}
}

// blockings are parameters that belong to them.
func blockings() []tileParameters {
	return []tileParameters{
		{rowTiles: 1024, vectorTiles: 1, inner: 1, unroll: 1, prefetch: 1024, feed: feedRoot},
		{rowTiles: 4, vectorTiles: 64, inner: 1, unroll: 2, feed: feedBlock, pack: 1},
		{rowTiles: 8, vectorTiles: 4, outer: 1, unroll: 4, prefetch: 2048, feed: feedRoot},
		{rowTiles: 1, vectorTiles: 64, unroll: 4, reduce: 64, feed: feedRoot},
		{rowTiles: 56, vectorTiles: 2, outer: 1, unroll: 9, feed: feedInline},
		{rowTiles: 14, vectorTiles: 8, outer: 1, inner: 1, unroll: 4, reduce: 16, prefetch: 1024, feed: feedBlock, pack: 1},
	}
}

// windowTiles are tiles whose positions share what a window reads and leave registers for it.
func windowTiles() []accumulators {
	return []accumulators{
		{2, 2, 2}, {4, 2, 1}, {4, 1, 1}, {2, 3, 1}, {2, 2, 1}, {1, 7, 1},
		{1, 4, 2}, {4, 2, 2}, {4, 4, 1},
	}
}

// windowBlockings are parameters with which a window is written out whole and its borders need no copy.
func windowBlockings() []tileParameters {
	return []tileParameters{
		{rowTiles: 1024, vectorTiles: 64, outer: 1, unroll: 1024, feed: feedInline},
		{rowTiles: 7, vectorTiles: 8, unroll: 1024, feed: feedInline},
		{rowTiles: 4, vectorTiles: 64, outer: 1, unroll: 1024, feed: feedInline},
	}
}
