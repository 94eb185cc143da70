package runner

import (
	"slices"
	"sync"
)

// Calibration remembers how long the harness's calibration kernel took on a device, so that each measurement can say
// how calm the device was. Its methods may be called from several goroutines; those of a nil one remember nothing.
type Calibration struct {
	mu     sync.Mutex
	recent []float64
	// debt is what waiting for a calm device took and has not been earned back by measuring, in seconds.
	debt float64
}

// waitShare of the time that plans take may go to waiting for a calm device and to measuring again: where a neighbour
// stays, or a device is slower than it was, waiting changes nothing.
const waitShare = 0.125

// patience is how much time the next plan may spend so, in seconds, of the most that one may.
func (c *Calibration) patience(most float64) float64 {
	if c == nil {
		return most
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(0, most-c.debt)
}

// account takes in that a plan took so many seconds, of which it spent some on waiting.
func (c *Calibration) account(took, spent float64) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.debt = max(0, c.debt+spent-waitShare*took)
}

// rememberedCalibrations bounds how far back the best goes: on a device that got slower for good, by heat or by a
// neighbour who stays, the measure must become what it can do now.
const rememberedCalibrations = 512

// BestSeconds is the least of the remembered times; 0 when there is none.
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

// ratio is how many times the best known a calibration took, the larger of the one before and the one after a
// measurement.
func (c *Calibration) ratio(before, after float64) float64 {
	worse := max(before, after)
	best := c.BestSeconds()
	if best == 0 || worse == 0 {
		return 0
	}
	return worse / best
}
