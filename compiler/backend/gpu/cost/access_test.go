package cost

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// warp returns a warp whose threads are numbered from 0, with the given number of active ones.
func warp(threads int) (*sample, *expr.Var) {
	thread := &expr.Var{Name: "thread", Extent: width}
	var v lanes
	for k := range v {
		v[k] = int64(k)
	}
	return &sample{map[*expr.Var]*lanes{thread: &v}, uint32(uint64(1)<<threads - 1)}, thread
}

// TestAccessesMoveWhatTheHardwareMoves counts sectors of global memory and turns of the shared memory banks for
// accesses at a multiple of the thread number.
func TestAccessesMoveWhatTheHardwareMoves(t *testing.T) {
	for name, c := range map[string]struct {
		threads        int
		stride, bytes  int64
		sectors, turns int
	}{
		"neighbours":                         {32, 1, 4, 4, 1},
		"the same word":                      {32, 0, 4, 1, 1},
		"every other word":                   {32, 2, 4, 8, 2},
		"a column of 32":                     {32, 32, 4, 32, 32},
		"a column of 33":                     {32, 33, 4, 32, 1},
		"vectors of four":                    {32, 4, 16, 16, 4},
		"vectors of four in rows of 32":      {32, 32, 16, 32, 32},
		"vectors of four in rows of 36":      {32, 36, 16, 32, 4},
		"neighbours of half a warp":          {16, 1, 4, 2, 1},
		"backwards, across a sector's begin": {32, -1, 4, 5, 1},
		"nobody":                             {0, 1, 4, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, thread := warp(c.threads)
			at := s.eval(expr.MulE(thread, expr.I(c.stride)))
			if got := s.sectors(&at, 4, c.bytes); got != c.sectors {
				t.Errorf("%d sectors, want %d", got, c.sectors)
			}
			if got := Turns(s.active, &at, 4, c.bytes); got != c.turns {
				t.Errorf("%d turns, want %d", got, c.turns)
			}
		})
	}
}

// TestConditionsHoldForSomeThreads checks that each branch of a divergent condition has its threads.
func TestConditionsHoldForSomeThreads(t *testing.T) {
	s, thread := warp(32)
	cond := expr.Bin(expr.Lt, expr.Bin(expr.FloorMod, thread, expr.I(4)), expr.I(1))
	yes, no := s.where(cond, true), s.where(cond, false)
	if yes.active != 0x11111111 || no.active != ^yes.active {
		t.Errorf("%x and %x are active, want every fourth thread and the others", yes.active, no.active)
	}
}
