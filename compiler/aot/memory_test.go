package aot

import (
	"math/rand/v2"
	"testing"
)

func TestPlaceSharesMemoryOnlyOverTime(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		spans := make([]span, 1+r.IntN(40))
		for k := range spans {
			from := r.IntN(20)
			spans[k] = span{bytes: int64(r.IntN(5000)), from: from, to: from + r.IntN(6)}
		}
		a := []alignment{onProcessors, onDevices}[seed%2]
		offsets, total := a.place(spans, seed%3 == 0)
		if smallest := a.lowerBound(spans); total < smallest {
			t.Fatalf("seed %d: %d bytes are less than the %d in use at a time", seed, total, smallest)
		}
		for k := range spans {
			if offsets[k]%int64(a) != 0 {
				t.Fatalf("seed %d: span %d lies at %d", seed, k, offsets[k])
			}
			checkSpan(t, seed, spans, offsets, total, k)
		}
	}
}

func checkSpan(t *testing.T, seed uint64, spans []span, offsets []int64, total int64, a int) {
	t.Helper()
	end := offsets[a] + spans[a].bytes
	if offsets[a] < 0 || end > total {
		t.Fatalf("seed %d: span %d lies at %d..%d of %d", seed, a, offsets[a], end, total)
	}
	for b := range a {
		if spans[a].overlaps(spans[b]) && offsets[b] < end && offsets[a] < offsets[b]+spans[b].bytes {
			t.Fatalf("seed %d: spans %v and %v share bytes", seed, spans[a], spans[b])
		}
	}
}

func TestChainNeedsNoMoreThanTwoBuffers(t *testing.T) {
	var spans []span
	for k := range 10 {
		spans = append(spans, span{bytes: 640, from: k, to: k + 1})
	}
	if _, total := onProcessors.place(spans, false); total != 1280 || onProcessors.lowerBound(spans) != 1280 {
		t.Errorf("total %d, lower bound %d", total, onProcessors.lowerBound(spans))
	}
}

// TestOpenSpansBeginTogether: the large span is followed by two small ones, which begin at the start of it and of the
// span beside it, rather than both inside it.
func TestOpenSpansBeginTogether(t *testing.T) {
	spans := []span{{bytes: 6400, from: 0, to: 1}, {bytes: 6400, from: 0, to: 1}, {bytes: 3200, from: 2, to: 3}, {bytes: 3200, from: 2, to: 3}}
	for open, want := range map[bool]int64{false: 3200, true: 6400} {
		offsets, total := onProcessors.place(spans, open)
		if total != 12800 || max(offsets[2], offsets[3]) != want || min(offsets[2], offsets[3]) != 0 {
			t.Errorf("open %v: the small spans lie at %v of %d bytes", open, offsets[2:], total)
		}
	}
}
