package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
)

// shownDevices bounds the devices with individual metrics. Those with the largest drift come first.
const shownDevices = 100

// deviceCollector exports the state of devices and their calibrations.
type deviceCollector struct {
	devices               func(limit int) (map[tilthv1.DeviceState]int, int, []state.DeviceFigures)
	states, drifts, noise *prometheus.Desc
	warned                *prometheus.Desc
}

func newDeviceCollector(s Sources) *deviceCollector {
	return &deviceCollector{
		devices: s.Devices,
		states:  desc("devices", "Known devices, by state.", "state"),
		warned:  desc("warned_devices", "Devices that measure badly but still get work, as the only ones of their class."),
		drifts: desc("device_drift_ratio",
			"Slowdown of a device at its last calibration, relative to its reference: 0.04 is 4 %. Only of devices that drifted most.", "device"),
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
	states, warned, furthest := c.devices(shownDevices)
	ch <- prometheus.MustNewConstMetric(c.warned, prometheus.GaugeValue, float64(warned))
	gauge := func(d *prometheus.Desc, value float64, label string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, label)
	}
	for number := range tilthv1.DeviceState_name {
		if state := tilthv1.DeviceState(number); state != tilthv1.DeviceState_DEVICE_STATE_UNSPECIFIED {
			gauge(c.states, float64(states[state]), wire.DeviceState(state))
		}
	}
	for _, d := range furthest {
		gauge(c.drifts, d.Drift, d.Name)
		gauge(c.noise, d.Noise, d.Name)
	}
}
