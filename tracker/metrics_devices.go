package tracker

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tilth-dev/tilth/internal/wire/names"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/policy/drift"
)

// shownDevices bounds the devices that have metrics of their own: of more, those that drifted furthest do.
const shownDevices = 100

// deviceCollector tells how devices are, by what their calibrations say.
type deviceCollector struct {
	tracker               *Tracker
	states, drifts, noise *prometheus.Desc
	warned                *prometheus.Desc
}

func newDeviceCollector(t *Tracker) *deviceCollector {
	desc := func(name, help, label string) *prometheus.Desc {
		return prometheus.NewDesc("tilth_tracker_"+name, help, []string{label}, nil)
	}
	return &deviceCollector{
		tracker: t,
		states:  desc("devices", "Devices that ever joined, by state.", "state"),
		warned: prometheus.NewDesc("tilth_tracker_warned_devices",
			"Devices that measure badly and are given work all the same, as the only ones of their class.", nil, nil),
		drifts: desc("device_drift_ratio",
			"By how much a device was slower than its reference at its last calibration, 0.04 for 4 %; absent until it has one, and only for those that drifted furthest.", "device"),
		noise: desc("device_noise_ratio", "Standard deviation of the same calibration's samples, relative to their median.", "device"),
	}
}

// Describe implements prometheus.Collector.
func (c *deviceCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.states, c.warned, c.drifts, c.noise} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *deviceCollector) Collect(ch chan<- prometheus.Metric) {
	states, warned, furthest := c.tracker.deviceSums()
	ch <- prometheus.MustNewConstMetric(c.warned, prometheus.GaugeValue, float64(warned))
	gauge := func(d *prometheus.Desc, value float64, label string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, label)
	}
	for number := range tilthv1.DeviceState_name {
		if state := tilthv1.DeviceState(number); state != tilthv1.DeviceState_DEVICE_STATE_UNSPECIFIED {
			gauge(c.states, float64(states[state]), names.DeviceState(state))
		}
	}
	for _, d := range furthest {
		gauge(c.drifts, d.drift, d.name)
		gauge(c.noise, d.noise, d.name)
	}
}

// deviceSum is a device's last calibration in figures.
type deviceSum struct {
	name         string
	drift, noise float64
}

// deviceSums counts the devices by state, and those warned about, and returns those that drifted furthest.
func (t *Tracker) deviceSums() (states map[tilthv1.DeviceState]int, warned int, furthest []deviceSum) {
	t.mu.Lock()
	defer t.mu.Unlock()
	states = map[tilthv1.DeviceState]int{}
	for name, d := range t.devices {
		if t.agents[name] == nil {
			continue // told of, but no runner has joined by that name
		}
		states[d.state()]++
		if d.warning != nil {
			warned++
		}
		recent := d.calibration.GetRecent()
		if d.calibration.GetReference() == nil || len(recent) == 0 {
			continue
		}
		last := recent[len(recent)-1]
		furthest = append(furthest, deviceSum{name, drift.Drift(last, d.calibration.GetReference()), last.GetNoise()})
	}
	slices.SortFunc(furthest, func(a, b deviceSum) int {
		return cmp.Or(cmp.Compare(b.drift, a.drift), cmp.Compare(a.name, b.name))
	})
	return states, warned, furthest[:min(shownDevices, len(furthest))]
}
