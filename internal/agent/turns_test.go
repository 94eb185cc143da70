package agent

import (
	"fmt"
	"testing"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// farmOf describes the work of each shard: the weights of waiting owners, and the duration of leases.
type farmOf map[int]struct {
	weight float64
	takes  time.Duration
}

// play runs a number of leases and returns the working time for each shard.
func (f farmOf) play(t *testing.T, s *turns, leases int) (worked [4]time.Duration) {
	t.Helper()
	for n := range leases {
		at := -1
		for _, shard := range s.order(4) {
			if f[shard].weight > 0 {
				at = shard
				break
			}
		}
		if at < 0 {
			t.Fatal("no shard has work")
		}
		subject := fmt.Sprint(n)
		s.served(at, &tilthv1.LeaseWorkResponse{Lease: &tilthv1.LeaseToken{Subject: subject}, Weight: f[at].weight})
		s.ended(subject, f[at].takes)
		worked[at] += f[at].takes
	}
	return worked
}

func TestShardsTakeTurnsByTheWeightsOfWhoWaits(t *testing.T) {
	farm := farmOf{0: {1, time.Second}, 1: {3, 4 * time.Second}, 3: {2, time.Second / 2}} // shard 2 has no work
	var s turns
	farm.play(t, &s, 100) // learns the duration of leases
	check := func(want map[int]float64) {
		t.Helper()
		worked := farm.play(t, &s, 2000)
		var all time.Duration
		for _, w := range worked {
			all += w
		}
		for shard, part := range want {
			if got := float64(worked[shard]) / float64(all); got < part-0.02 || got > part+0.02 {
				t.Errorf("shard %d has %.3f of the time, want %.3f", shard, got, part)
			}
		}
	}
	check(map[int]float64{0: 1. / 6, 1: 3. / 6, 2: 0, 3: 2. / 6})
	farm[2] = farm[0] // its earlier idle time must not earn it credit
	check(map[int]float64{0: 1. / 7, 1: 3. / 7, 2: 1. / 7, 3: 2. / 7})
}

func TestShardThatDoesNotAnswerIsPassedOver(t *testing.T) {
	var s turns
	s.markUnresponsive(1)
	if order := s.order(3); len(order) != 2 || order[0] != 0 || order[1] != 2 {
		t.Errorf("the shards are asked in the order %v", order)
	}
}
