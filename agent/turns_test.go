package agent

import "testing"

func TestShardsTakeTurnsByTheWeightsOfWhoWaits(t *testing.T) {
	weights := map[int]float64{0: 1, 1: 3, 3: 2} // shard 2 has no work
	var s turns
	served := map[int]int{}
	next := func() (shard int) {
		for _, shard := range s.order(4) {
			if weights[shard] > 0 {
				s.served(shard, weights[shard])
				return shard
			}
		}
		t.Fatal("no shard has work")
		return 0
	}
	for range 600 {
		served[next()]++
	}
	for shard, want := range map[int]int{0: 100, 1: 300, 2: 0, 3: 200} {
		if got := served[shard]; got < want-2 || got > want+2 {
			t.Errorf("shard %d is served %d times of 600, want %d", shard, got, want)
		}
	}
	weights[2] = 6 // that it had no work before earns it nothing
	clear(served)
	for range 120 {
		served[next()]++
	}
	if served[2] < 57 || served[2] > 63 {
		t.Errorf("a shard that has work again is served %d times of 120, want 60", served[2])
	}
}

func TestAShardThatDoesNotAnswerIsPassedOver(t *testing.T) {
	var s turns
	s.silent(1)
	if order := s.order(3); len(order) != 2 || order[0] != 0 || order[1] != 2 {
		t.Errorf("the shards are asked in the order %v", order)
	}
}
