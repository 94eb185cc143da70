package runner

import (
	"slices"
	"sync"
)

// Calibration remembers the times of the harness's calibration kernel on a device, so that each measurement
// can report how calm the device was. It is safe for concurrent use. A nil Calibration remembers nothing.
type Calibration struct {
	mu     sync.Mutex
	recent []float64
	// debt is the time in seconds spent waiting for a calm device and not yet compensated by measuring.
	debt float64
}

// waitShare is the share of the plans' time that may be spent waiting for a calm device and measuring again.
// If a neighbour stays, or the device is permanently slower, waiting does not help.
const waitShare = 0.125

// patience returns how much time, in seconds, the next plan may spend waiting, at most limit.
func (c *Calibration) patience(limit float64) float64 {
	if c == nil {
		return limit
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(0, limit-c.debt)
}

// account records the duration of a plan and the part that it spent waiting.
func (c *Calibration) account(took, spent float64) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.debt = max(0, c.debt+spent-waitShare*took)
}

// rememberedCalibrations bounds the history of the best time. On a device that becomes permanently slower, by
// heat or a neighbour, the reference must adapt.
const rememberedCalibrations = 512

// BestSeconds returns the lowest remembered time, or 0.
func (c *Calibration) BestSeconds() float64 {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.recent) == 0 {
		return 0
	}
	return slices.Min(c.recent)
}

func (c *Calibration) add(seconds float64) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recent = append(c.recent, seconds)
	if len(c.recent) > rememberedCalibrations {
		c.recent = slices.Delete(c.recent, 0, len(c.recent)-rememberedCalibrations)
	}
}

// ratio returns the larger of the calibrations before and after a measurement, relative to the best known.
func (c *Calibration) ratio(before, after float64) float64 {
	worse := max(before, after)
	best := c.BestSeconds()
	if best == 0 || worse == 0 {
		return 0
	}
	return worse / best
}
