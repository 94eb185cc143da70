package policy_test

import (
	"testing"
	"time"

	"github.com/tilth-dev/tilth/tracker/policy"
)

func TestBackoffDoublesUpToTheLongest(t *testing.T) {
	for before, want := range map[int]time.Duration{
		-1: time.Second, 0: time.Second, 1: 2 * time.Second, 5: 32 * time.Second, 6: time.Minute, 1000: time.Minute,
	} {
		for range 100 {
			if got := policy.Backoff(time.Second, time.Minute, before); got < want/2 || got > want {
				t.Fatalf("after %d failures %v, want %v to %v", before, got, want/2, want)
			}
		}
	}
}
