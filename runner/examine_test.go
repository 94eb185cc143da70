package runner

import (
	"math"
	"math/rand/v2"
	"testing"
)

// noises are disturbances in units of the time of a rehearsal: what a turn takes besides what it should. Each call
// returns an independent machine.
var noises = map[string]func(r *rand.Rand) func() float64{
	"quiet":      func(r *rand.Rand) func() float64 { return func() float64 { return 0.01 * r.ExpFloat64() } },
	"busy":       func(r *rand.Rand) func() float64 { return func() float64 { return 0.3 * r.ExpFloat64() } },
	"interrupts": func(r *rand.Rand) func() float64 { return func() float64 { return math.Exp(2*r.NormFloat64() - 3) } },
	"phases": func(r *rand.Rand) func() float64 { // of any length, in which everything takes up to three times as long
		slow, left := 0.0, 0
		return func() float64 {
			if left--; left < 0 {
				slow, left = 2*r.Float64(), int(40*r.ExpFloat64())
			}
			return slow + 0.02*r.ExpFloat64()
		}
	},
	"stolen": func(r *rand.Rand) func() float64 { // half of the turns wait for another process's time slice
		return func() float64 { return float64(r.IntN(2)) * 30 * r.Float64() }
	},
}

// examined returns what examinations of 300 turns show of a latency, in units of a rehearsal.
func examined(r *rand.Rand, noise func() float64, latency, claimed float64) *evidence {
	seen := &evidence{}
	for n := 0; n < 300 && !seen.decides(claimed); n++ {
		before, between := 1+noise(), 1+noise()
		if r.IntN(2) == 0 {
			before, between = between, before
		}
		seen.add(before+latency, between)
	}
	return seen
}

// TestNoNoiseMakesAnExaminationBelieveALie claims down to a thousandth of the true latency, which is between a
// thirtieth of a rehearsal and thirty of them.
func TestNoNoiseMakesAnExaminationBelieveALie(t *testing.T) {
	for name, machine := range noises {
		r := rand.New(rand.NewPCG(1, 2))
		for lie := range 1000 {
			latency := math.Pow(30, 2*r.Float64()-1)
			claimed := latency / (1.2 * maxClockRatio * math.Pow(300, r.Float64()))
			seen := examined(r, machine(r), latency, claimed)
			if seen.confirms(claimed) {
				t.Errorf("%s, lie %d: %.3g rehearsals pass for %.3g", name, lie, latency, claimed)
			}
			if _, high := seen.bounds(); high < latency*0.9 {
				t.Errorf("%s, lie %d: %.3g rehearsals are recorded as %.3g", name, lie, latency, high)
			}
		}
	}
}

// TestExaminationDoesNotBelieveZeroSeconds is a regression test: the difference between an execution and a rehearsal
// counted as a latency of 0 when a disturbed rehearsal took longer.
func TestExaminationDoesNotBelieveZeroSeconds(t *testing.T) {
	seen := &evidence{}
	for range 100 {
		seen.add(1, 1.2)
	}
	if low, high := seen.bounds(); low != 0 || high != 1 || seen.decides(0.01) {
		t.Errorf("a claim of 0.01 is believed: from %v to %v", low, high)
	}
}

// TestExaminationsConfirmHonestClaims states the least share of honest claims that are confirmed, for
// latencies from a tenth of a rehearsal.
func TestExaminationsConfirmHonestClaims(t *testing.T) {
	for name, least := range map[string]float64{"quiet": 1, "phases": 0.99, "interrupts": 0.95, "busy": 0.9, "stolen": 0.6} {
		r, confirmed := rand.New(rand.NewPCG(3, 4)), 0.0
		for range 1000 {
			latency := math.Pow(10, 2*r.Float64()-1)
			if examined(r, noises[name](r), latency, latency).confirms(latency) {
				confirmed++
			}
		}
		t.Logf("%s: %.1f %% of honest claims are confirmed", name, confirmed/10)
		if confirmed/1000 < least {
			t.Errorf("%s: only %.1f %% of honest claims are confirmed", name, confirmed/10)
		}
	}
}
