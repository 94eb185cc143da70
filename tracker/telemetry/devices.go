package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
)

// shownDevices bounds the devices with individual metrics. Those with the largest drift come first.
const shownDevices = 100

// deviceFigures are the results of Sources.Devices.
type deviceFigures struct {
	states   map[tilthv1.DeviceState]int
	warned   int
	furthest []state.DeviceFigures
}

// newDeviceCollector returns the collector of the states of devices and their calibrations.
func newDeviceCollector(from Sources) prometheus.Collector {
	type F = deviceFigures
	byDevice := func(name, help string, value func(state.DeviceFigures) float64) family[F] {
		return gauges(name, help, []string{"device"}, func(f F, emit func(float64, ...string)) {
			for _, d := range f.furthest {
				emit(value(d), d.Name)
			}
		})
	}
	read := func() (f F) {
		f.states, f.warned, f.furthest = from.Devices(shownDevices)
		return f
	}
	return &collector[F]{read, []family[F]{
		gauges("devices", "Known devices, by state.", []string{"state"}, func(f F, emit func(float64, ...string)) {
			for number := range tilthv1.DeviceState_name {
				if state := tilthv1.DeviceState(number); state != tilthv1.DeviceState_DEVICE_STATE_UNSPECIFIED {
					emit(float64(f.states[state]), wire.DeviceState(state))
				}
			}
		}),
		gauge("warned_devices", "Devices that measure badly but still get work, as the only ones of their class.", func(f F) float64 { return float64(f.warned) }),
		byDevice("device_drift_ratio",
			"Slowdown of a device at its last calibration, relative to its reference: 0.04 is 4 %. Only of devices that drifted most.",
			func(d state.DeviceFigures) float64 { return d.Drift }),
		byDevice("device_noise_ratio", "Standard deviation of the same calibration's samples, relative to their median.",
			func(d state.DeviceFigures) float64 { return d.Noise }),
	}}
}
