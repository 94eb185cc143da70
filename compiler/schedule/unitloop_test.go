package schedule

import (
	"strings"
	"testing"
)

const scalar = `tilth-workload 1
input t0 f32[64]
sum t1 f32[] over 64 = [t0 r0]
map t2 f32[] = (add [t1] [t1])
output t2
`

// TestStageWithoutAxesGetsALoop checks that the loop can contain another stage, and can be bound.
func TestStageWithoutAxesGetsALoop(t *testing.T) {
	s := New(parseWorkload(t, scalar))
	loop, err := s.UnitLoop(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{s.Bind(1, loop, BlockLevel), s.ComputeAt(0, 1, loop), s.SetScope(0, Shared)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	again, err := Replay(s.Workload, s.Trace())
	if err != nil || string(again.Trace()) != string(s.Trace()) || again.Stages[1].Leaves[0].Kind != Block {
		t.Errorf("%s is replayed as %v, %v", s.Trace(), again, err)
	}
}

// TestStageHasSoManyLoops checks the error for a unit loop above the limit.
func TestStageHasSoManyLoops(t *testing.T) {
	trace := traceHeader + "\n" + strings.Repeat("unit-loop 0\n", maxIters)
	if _, err := Replay(parseWorkload(t, scalar), []byte(trace)); err == nil || !strings.Contains(err.Error(), "too many iterators") {
		t.Error(err)
	}
}
