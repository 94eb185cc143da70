package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/tracker/policy"
)

// driftFlags configures how calibrations are judged.
type driftFlags struct{ policy policy.Drift }

func (f *driftFlags) add(c *cobra.Command) {
	f.policy = policy.Drift{}.WithDefaults()
	p := &f.policy
	c.Flags().Float64Var(&p.Remeasure, "drift-remeasure", p.Remeasure, "`share` by which a device may change before its measurements since are repeated")
	c.Flags().Float64Var(&p.Quarantine, "drift-quarantine", p.Quarantine, "`share` by which a device may be slower than its reference before it is quarantined")
	c.Flags().Float64Var(&p.Noise, "noise-quarantine", p.Noise, "relative standard `deviation` of a calibration's samples above which a device is quarantined")
	c.Flags().DurationVar(&p.Interval, "calibrate-every", p.Interval, "time between calibrations of an idle device; those of a busy one are up to four times as far apart")
}

func (f *driftFlags) check() error {
	for _, v := range []struct {
		flag  string
		value float64
	}{{"drift-remeasure", f.policy.Remeasure}, {"drift-quarantine", f.policy.Quarantine}, {"noise-quarantine", f.policy.Noise}} {
		if !(v.value > 0) {
			return usagef("--%s %v: want more than 0, such as 0.05", v.flag, v.value)
		}
	}
	if f.policy.Interval < time.Second {
		return usagef("--calibrate-every %v: want a second or more", f.policy.Interval)
	}
	return nil
}
