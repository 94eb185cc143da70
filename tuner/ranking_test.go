package tuner

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

func TestRankingCountsPairsOfABatch(t *testing.T) {
	var right, wrong int
	r := newRanking(func(a, b int) { right, wrong = right+a, wrong+b })
	r.begin()
	r.predict("fast", 1)
	r.predict("slow", 3)
	r.predict("like slow", 4)
	r.predict("surprise", 5)
	r.begin()
	r.predict("of another batch", 0)
	for _, trial := range []Trial{
		{Digest: "slow", LatencySeconds: 0.20}, {Digest: "of another batch", LatencySeconds: 9}, {Digest: "fast", LatencySeconds: 0.10},
		{Digest: "like slow", LatencySeconds: 0.195}, {Digest: "surprise", LatencySeconds: 0.15}, {Digest: "nobody's", LatencySeconds: 1},
	} {
		r.measured(trial)
	}
	// fast before slow, like slow and surprise; surprise, wrongly, after slow and like slow; slow and like slow are
	// too near.
	if right != 3 || wrong != 2 {
		t.Errorf("%d pairs are right and %d wrong, want 3 and 2", right, wrong)
	}
	for range rememberedBatches {
		r.begin()
	}
	if len(r.known)+len(r.predictions) != 0 {
		t.Errorf("%d batches and %d predictions are remembered for ever", len(r.known), len(r.predictions))
	}
}

func TestRankingOfALearnerIsReported(t *testing.T) {
	var pairs int
	s := spaceOf(t, kerneltest.Product(t, 64, 96, 64), testTarget(t), schedule.Default)
	search, err := NewSearch(s, nil, Options{Seed: 1, Ranked: func(right, wrong int) { pairs += right + wrong }})
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		for k, c := range search.Propose(8) {
			search.Observe(Trial{Digest: c.Digest, Origin: c.Origin, LatencySeconds: float64(1 + (k*7+round)%8)})
		}
	}
	if pairs == 0 {
		t.Error("no pair of three batches was ranked")
	}
}
