package runner

import (
	"math"
	"testing"
)

// TestWaitingForACalmDeviceIsBounded checks that a permanently noisy device costs one long wait, and then a limited
// share of the time.
func TestWaitingForACalmDeviceIsBounded(t *testing.T) {
	const limit = 0.25
	c := &Calibration{}
	took, waited := 0.0, 0.0
	for range 1000 {
		spent := c.patience(limit)
		c.account(0.1+spent, spent)
		took, waited = took+0.1+spent, waited+spent
	}
	if allowed := limit + waitShare*took; waited > allowed+1e-9 || waited < 0.9*allowed {
		t.Errorf("waited %g s of %g s, want about %g", waited, took, allowed)
	}
	for range 100 {
		c.account(0.1, 0)
	}
	if got := c.patience(limit); math.Abs(got-limit) > 1e-12 {
		t.Errorf("patience %g s after a calm time, want %g", got, limit)
	}
}
