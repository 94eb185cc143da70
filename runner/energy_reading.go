package runner

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tilth-dev/tilth/internal/stats"
)

// EnergyReading is a measurement from Begin to End.
type EnergyReading struct {
	meter  *EnergyMeter
	begin  time.Time
	before []float64
	// watts holds the readings of a sensor until failed.
	watts  []float64
	failed error
	stop   chan struct{}
	ended  sync.WaitGroup
}

// Begin starts a reading of the meter.
func (m *EnergyMeter) Begin() (*EnergyReading, error) {
	r := &EnergyReading{meter: m, begin: time.Now(), stop: make(chan struct{})}
	var err error
	if m.sensor == "" {
		r.before, err = m.read()
		return r, err
	}
	if _, err = m.look(); err != nil {
		return nil, err
	}
	r.ended.Go(r.watch)
	return r, nil
}

// End returns the mean power in watts since Begin.
func (r *EnergyReading) End() (watts float64, err error) {
	if r.meter.sensor != "" {
		close(r.stop)
		r.ended.Wait()
		if r.failed != nil {
			return 0, r.failed
		}
		// The first third is discarded because chips report a moving average.
		return positive(stats.Of(r.watts[len(r.watts)/3:]).Median, r.meter)
	}
	after, err := r.meter.read()
	if err != nil {
		return 0, err
	}
	seconds, joules := time.Since(r.begin).Seconds(), 0.0
	for k, c := range r.meter.counters {
		spent := after[k] - r.before[k]
		if spent < 0 {
			spent += c.microjoules
		}
		joules += spent / 1e6
	}
	return positive(joules/seconds, r.meter)
}

// powerWindow is the window in which counters are read for the current power.
const powerWindow = 100 * time.Millisecond

// Power returns the current power in watts: a chip's moving average, or the mean of a tenth of a second.
func (m *EnergyMeter) Power(ctx context.Context) (watts float64, err error) {
	if m.sensor != "" {
		return m.look()
	}
	r, err := m.Begin()
	if err != nil {
		return 0, err
	}
	select {
	case <-time.After(powerWindow):
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	return r.End()
}

// positive rejects implausible values.
func positive(watts float64, m *EnergyMeter) (float64, error) {
	if watts > 0 {
		return watts, nil
	}
	return 0, fmt.Errorf("energy meter %s says %v W for a machine at work: choose another by --meter", m.name, watts)
}

// watch polls the sensor until the reading ends, at least once.
func (r *EnergyReading) watch() {
	tick := time.NewTicker(between)
	defer tick.Stop()
	for {
		watts, err := r.meter.look()
		if err != nil {
			r.failed = err
			return
		}
		r.watts = append(r.watts, watts)
		select {
		case <-r.stop:
			return
		case <-tick.C:
		}
	}
}

// probe returns why the meter cannot be read, or nil.
func (m *EnergyMeter) probe() error {
	_, err := m.read()
	if m.sensor != "" {
		_, err = m.look()
	}
	return err
}

// read returns the counters' values in microjoules.
func (m *EnergyMeter) read() (values []float64, err error) {
	values = make([]float64, len(m.counters))
	for k, c := range m.counters {
		if values[k], err = number(m.sys, c.file); err != nil {
			return nil, fmt.Errorf("energy meter %s: %w", m.name, err)
		}
	}
	return values, nil
}

// look returns the sensor's value in watts.
func (m *EnergyMeter) look() (float64, error) {
	microwatts, err := number(m.sys, m.sensor)
	if err != nil {
		return 0, fmt.Errorf("energy meter %s: %w", m.name, err)
	}
	return microwatts / 1e6, nil
}
