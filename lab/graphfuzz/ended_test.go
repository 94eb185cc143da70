package graphfuzz

import (
	"errors"
	"testing"
)

// TestPeerThatAGraphEndsIsStartedAgain distinguishes a crash from a refused graph. The next graph runs in a new
// process.
func TestPeerThatAGraphEndsIsStartedAgain(t *testing.T) {
	p := newPeer(t, "sh", "-c", `while read -r question; do [ -e "$0" ] || { : > "$0"; kill -SEGV $$; }; echo '{"error":"no"}'; done`,
		t.TempDir()+"/ended")
	c := Generate(1)
	var ended endedError
	if _, err := p.run(t.Context(), c); !errors.As(err, &ended) || err.Error() != "ended: signal: segmentation fault" {
		t.Errorf("the first graph: %v", err)
	}
	var refused refusedError
	for range 2 {
		if _, err := p.run(t.Context(), c); !errors.As(err, &refused) || string(refused) != "no" {
			t.Errorf("a later graph: %v", err)
		}
	}
}

func TestOneGraphInAHundredMayStayUncompared(t *testing.T) {
	for graphs, want := range map[int]int{1: 1, 48: 1, 100: 1, 199: 1, 200: 2, 8700: 87} {
		if got := maxUncompared(graphs); got != want {
			t.Errorf("%d of %d, want %d", got, graphs, want)
		}
	}
}
