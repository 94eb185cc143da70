package policy

import "time"

// Drift defines the thresholds and intervals of the judgement. Zero fields have defaults.
type Drift struct {
	// Remeasure is the relative change of a device beyond which measurements made meanwhile are repeated. Default
	// 0.03.
	Remeasure float64
	// Quarantine is the slowdown relative to the reference beyond which a device is quarantined. Default 0.08.
	Quarantine float64
	// Noise is the tolerated standard deviation of a calibration's samples relative to their median. Default 0.05.
	Noise float64
	// Interval is the time between calibrations of an idle device. Default 5 min. A busy device has up to four times
	// as long.
	Interval time.Duration
	// Confirm is the time to the next calibration after one that was not calm, and between a new device's first ones.
	// Default 10 s.
	Confirm time.Duration
	// Settle is how long a device must go without a calm calibration to count as noisy. Default 5 min.
	Settle time.Duration
	// FirstProbe is the length of a first quarantine before the device is probed. It doubles with each further one up
	// to LongestProbe, and starts over once the device has been well for LongestProbe. Defaults 1 min and 1 h.
	FirstProbe, LongestProbe time.Duration
}

// WithDefaults returns p with defaults in place of zero fields.
func (p Drift) WithDefaults() Drift {
	for _, f := range []struct {
		value     *float64
		byDefault float64
	}{{&p.Remeasure, 0.03}, {&p.Quarantine, 0.08}, {&p.Noise, 0.05}} {
		if *f.value == 0 {
			*f.value = f.byDefault
		}
	}
	for _, f := range []struct {
		value     *time.Duration
		byDefault time.Duration
	}{{&p.Interval, 5 * time.Minute}, {&p.Confirm, 10 * time.Second}, {&p.Settle, 5 * time.Minute}, {&p.FirstProbe, time.Minute}, {&p.LongestProbe, time.Hour}} {
		if *f.value == 0 {
			*f.value = f.byDefault
		}
	}
	return p
}
