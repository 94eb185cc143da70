package drift

import "time"

// Policy says when a device is what to do about it. Zero values mean the defaults.
type Policy struct {
	// Remeasure is the part by which a device may change before what was measured meanwhile is measured again; 0.03 by
	// default.
	Remeasure float64
	// Quarantine is the part by which a device may be slower than its reference; 0.08 by default.
	Quarantine float64
	// Noise is the standard deviation of a calibration's samples that is borne, relative to their median; 0.05 by
	// default.
	Noise float64
	// Interval is the time between calibrations of an idle device; 5 min by default. A busy one's are up to four times
	// as far apart.
	Interval time.Duration
	// Confirm is the time until the next calibration after one that is not calm, and between a device's first ones; 10
	// s by default.
	Confirm time.Duration
	// Settle is how long no calibration may be calm until a device counts as noisy; 5 min by default.
	Settle time.Duration
	// FirstProbe is how long a first quarantine lasts until the device is tried again; each further one lasts twice as
	// long, up to LongestProbe. A device that was well for LongestProbe begins anew. 1 min and 1 h by default.
	FirstProbe, LongestProbe time.Duration
}

// WithDefaults fills in what is not set.
func (p Policy) WithDefaults() Policy {
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
