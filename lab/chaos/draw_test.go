package chaos

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// TestClocksShiftWhileATrackerStarts is a regression test for a deadlock between a starting life and a shift of the
// clocks.
func TestClocksShiftWhileATrackerStarts(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, dataName), 0o755); err != nil {
		t.Fatal(err)
	}
	f := &farm{dir: dir}
	r := &round{farm: f, incidents: incidents{counts: map[string]int{}}}
	f.tracker = &process{
		name: "tracker", log: filepath.Join(dir, "tracker.log"), lives: f.life, died: r.died,
		command: func(int) []string { return []string{"true"} },
	}
	r.clocks = &clocks{tracker: f.tracker, path: filepath.Join(f.data(), clockName), pace: 1}
	var shifting sync.WaitGroup
	over := make(chan struct{})
	shifting.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
				r.clocks.shift(time.Second, 0)
			}
		}
	})
	for range 200 {
		if err := f.tracker.startWith(r.takeArmed); err != nil {
			t.Error(err)
		}
		f.tracker.kill(false)
	}
	close(over)
	shifting.Wait()
}
