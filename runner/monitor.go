package runner

import (
	"cmp"
	"context"
	"log/slog"
	"sync"

	"github.com/tilth-dev/tilth/compiler/backend"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Monitored provides the calibrations and surroundings of a device other than the processor. Both come from
// the same query.
type Monitored struct {
	monitor backend.Monitor
	// host reads the surroundings of the device's machine.
	host func(context.Context) *tilthv1.Surroundings
	log  *slog.Logger

	mu   sync.Mutex
	last backend.Health
	// logged is set once the log explains why the device's health is unknown.
	logged bool
}

// NewMonitored returns the calibrations of a device.
func NewMonitored(monitor backend.Monitor, host func(context.Context) *tilthv1.Surroundings, log *slog.Logger) *Monitored {
	return &Monitored{monitor: monitor, host: host, log: log}
}

// Name implements Kernels.
func (m *Monitored) Name() string { return m.monitor.Name() }

// Run implements Kernels.
func (m *Monitored) Run(ctx context.Context) (CalibrationTimes, error) {
	reading, err := m.monitor.Read(ctx)
	if err != nil {
		return CalibrationTimes{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = reading.Health
	if reading.Health.Unknown != "" && !m.logged {
		m.logged = true
		m.log.Info("the device's temperature, clocks and errors are not known", "error", reading.Health.Unknown)
	}
	return CalibrationTimes{Compute: reading.Compute, Memory: reading.Memory}, nil
}

// Surroundings returns the surroundings of the device at its last calibration and the current ones of its machine.
func (m *Monitored) Surroundings(ctx context.Context) *tilthv1.Surroundings {
	s := cmp.Or(m.host(ctx), &tilthv1.Surroundings{})
	m.mu.Lock()
	h := m.last
	m.mu.Unlock()
	for _, celsius := range h.Celsius {
		s.Temperatures = append(s.Temperatures, &tilthv1.Temperature{Sensor: device, Celsius: celsius})
	}
	for _, c := range h.Clocks {
		s.Clocks = append(s.Clocks, &tilthv1.Clock{Domain: device + " " + c.Part, Hertz: c.Hertz, MostHertz: c.Max})
	}
	if h.Slowed != nil {
		now := &tilthv1.Throttling{Source: device + " now"}
		if *h.Slowed {
			now.Events = 1
		}
		s.Throttling = append(s.Throttling, now)
	}
	if h.Errors != nil {
		s.MemoryErrors = append(s.MemoryErrors, &tilthv1.MemoryErrors{Memory: device, Corrected: h.Errors.Corrected, Uncorrected: h.Errors.Uncorrected})
	}
	s.Impairments = append(s.Impairments, h.Impairments...)
	return s
}

// device is the name of the device in surroundings.
const device = "gpu"
