package sink_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/ir/irtest"
	"github.com/tilth-dev/tilth/compiler/pass/sink"
)

// TestACopyInRoundsIsEachThreadsOwnLoop, since rounds write different elements.
func TestACopyInRoundsIsEachThreadsOwnLoop(t *testing.T) {
	f := irtest.Replayed(t, irtest.Product, strings.Replace(irtest.Tiles, "split 2 2 8 0", "split 2 2 4 0", 1))
	irtest.Golden(t, "before", f)
	irtest.Golden(t, "after", sink.Run(f))
}

// TestACopyToRowsWithGapsIsEachThreadsOwnLoop: where each thread writes is no plain sum of loops then.
func TestACopyToRowsWithGapsIsEachThreadsOwnLoop(t *testing.T) {
	for _, threads := range []string{"6", "4"} { // rounds of whole rows, and of parts of them
		f := irtest.Replayed(t, irtest.Product, strings.Replace(irtest.Tiles, "split 2 2 8 0", "skew 2 4\nsplit 2 2 "+threads+" 0", 1))
		if before, after := f.Text(), sink.Run(f).Text(); before == after {
			t.Errorf("%s threads: the loop over rounds has not moved:\n%s", threads, after)
		}
	}
}

// TestSumsOverRoundsStayTogether: each round adds to what another thread may have stored.
func TestSumsOverRoundsStayTogether(t *testing.T) {
	f := irtest.Replayed(t, "input t0 f32[8,4]\nsum t1 f32[8] over 4 = [t0 i0 r0]\noutput t1\n", "reorder 0 1 0\nbind 0 0 1\n")
	if got := sink.Run(f).Text(); got != f.Text() {
		t.Errorf("the loop over terms has moved:\n%s", got)
	}
}
