// This file reads conditions that affect a machine's speed: temperatures, clocks and their governors, and throttling.
// It omits unavailable values and never fails.

package runner

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/target"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// maxReadings limits the readings of each kind; large servers have hundreds.
const maxReadings = 64

// SurroundingsReader reads a machine's surroundings.
type SurroundingsReader struct {
	// Sys is the kernel's /sys.
	Sys fs.FS
	// GPUs queries NVIDIA's tool; nil if there are no GPUs.
	GPUs func(ctx context.Context) (csv string, err error)
	// Power reads the meter used for energy tuning, in watts, or 0 on failure; nil without a meter.
	Power func(ctx context.Context) (meter string, watts float64)
}

// MachineSurroundings returns a reader for this machine.
func MachineSurroundings() *SurroundingsReader {
	return &SurroundingsReader{Sys: os.DirFS("/sys"), GPUs: askNVIDIA}
}

// Read returns the available surroundings, or nil.
func (r *SurroundingsReader) Read(ctx context.Context) *tilthv1.Surroundings {
	s := &tilthv1.Surroundings{Temperatures: r.temperatures(), Clocks: r.clocks(), Throttling: r.throttling()}
	r.gpus(ctx, s)
	if r.Power != nil {
		meter, watts := r.Power(ctx)
		s.Power = []*tilthv1.Power{{Meter: meter, Watts: watts}}
	}
	if len(s.GetTemperatures())+len(s.GetClocks())+len(s.GetThrottling())+len(s.GetPower()) == 0 {
		return nil
	}
	s.Temperatures = s.Temperatures[:min(len(s.Temperatures), maxReadings)]
	s.Clocks = s.Clocks[:min(len(s.Clocks), maxReadings)]
	s.Throttling = s.Throttling[:min(len(s.Throttling), maxReadings)]
	return s
}

// temperatures reads thermal zones and further sensors.
func (r *SurroundingsReader) temperatures() (list []*tilthv1.Temperature) {
	for _, zone := range r.glob("class/thermal/thermal_zone*") {
		if t, ok := r.number(path.Join(zone, "temp")); ok {
			list = append(list, &tilthv1.Temperature{Sensor: r.text(path.Join(zone, "type")), Celsius: t / 1e3})
		}
	}
	for _, input := range r.glob("class/hwmon/hwmon*/temp*_input") {
		t, ok := r.number(input)
		if !ok {
			continue
		}
		label := r.text(strings.TrimSuffix(input, "_input") + "_label")
		sensor := strings.TrimSpace(r.text(path.Join(path.Dir(input), "name")) + " " + label)
		if !slices.ContainsFunc(list, func(o *tilthv1.Temperature) bool { return o.GetSensor() == sensor }) { // zones are sensors, too
			list = append(list, &tilthv1.Temperature{Sensor: sensor, Celsius: t / 1e3})
		}
	}
	return list
}

// clocks reads the clocks of processors, grouped by shared clock.
func (r *SurroundingsReader) clocks() (list []*tilthv1.Clock) {
	for _, policy := range r.glob("devices/system/cpu/cpufreq/policy*") {
		now, ok := r.number(path.Join(policy, "scaling_cur_freq"))
		if !ok {
			continue
		}
		limit, _ := r.number(path.Join(policy, "cpuinfo_max_freq"))
		list = append(list, &tilthv1.Clock{
			Domain: "cpu " + ranges(r.text(path.Join(policy, "affected_cpus"))), Hertz: now * 1e3, MostHertz: limit * 1e3,
			Governor: r.text(path.Join(policy, "scaling_governor")),
		})
	}
	return list
}

// throttling adds up the throttling counters of the processors.
func (r *SurroundingsReader) throttling() (list []*tilthv1.Throttling) {
	for _, source := range []string{"core", "package"} {
		var total float64
		found := false
		for _, counter := range r.glob("devices/system/cpu/cpu*/thermal_throttle/" + source + "_throttle_count") {
			n, ok := r.number(counter)
			total, found = total+n, found || ok
		}
		if found {
			list = append(list, &tilthv1.Throttling{Source: "cpu " + source, Events: uint64(total)})
		}
	}
	return list
}

// glob returns matching files in the order of the numbers in their names.
func (r *SurroundingsReader) glob(pattern string) []string {
	names, err := fs.Glob(r.Sys, pattern)
	if err != nil {
		return nil
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	return names
}

// text returns a file's first line as valid UTF-8, or "".
func (r *SurroundingsReader) text(name string) string {
	content, err := fs.ReadFile(r.Sys, name)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(content), "\n")
	return strings.ToValidUTF8(strings.TrimSpace(line), "?")
}

func (r *SurroundingsReader) number(name string) (float64, bool) {
	v, err := strconv.ParseFloat(r.text(name), 64)
	return v, err == nil
}

// ranges shortens a list of processors: "0 1 2 3 8" becomes "0-3,8".
func ranges(list string) string {
	var cpus []int
	for field := range strings.FieldsSeq(list) {
		n, err := strconv.Atoi(field)
		if err != nil {
			return list
		}
		cpus = append(cpus, n)
	}
	return target.FormatCPUs(cpus)
}

// Fields of the tool, in order; see nvidia-smi --help-query-gpu. The active throttle reasons are a bit set;
// bit 0 means that the GPU is idle.
const (
	gpuFields  = "index,temperature.gpu,clocks.sm,clocks.max.sm,clocks_throttle_reasons.active"
	idleReason = 1
	askLimit   = 5 * time.Second
)

// askNVIDIA queries the driver's tool, if installed.
func askNVIDIA(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, "nvidia-smi", "--query-gpu="+gpuFields, "--format=csv,noheader,nounits").Output()
	if err != nil {
		return "", fmt.Errorf("asking for GPUs: %w", err)
	}
	return string(out), nil
}

// gpus adds the GPUs. Unavailable fields contain words such as [N/A].
func (r *SurroundingsReader) gpus(ctx context.Context, s *tilthv1.Surroundings) {
	if r.GPUs == nil {
		return
	}
	csv, err := r.GPUs(ctx)
	if err != nil {
		return
	}
	for _, line := range strings.Split(strings.TrimSpace(csv), "\n") {
		fields := strings.Split(line, ",")
		if len(fields) != strings.Count(gpuFields, ",")+1 {
			continue
		}
		for i := range fields {
			fields[i] = strings.ToValidUTF8(strings.TrimSpace(fields[i]), "?")
		}
		name := "gpu " + fields[0]
		if t, err := strconv.ParseFloat(fields[1], 64); err == nil {
			s.Temperatures = append(s.Temperatures, &tilthv1.Temperature{Sensor: name, Celsius: t})
		}
		if now, err := strconv.ParseFloat(fields[2], 64); err == nil {
			limit, _ := strconv.ParseFloat(fields[3], 64) // 0 if unknown
			s.Clocks = append(s.Clocks, &tilthv1.Clock{Domain: name, Hertz: now * 1e6, MostHertz: limit * 1e6})
		}
		if reasons, err := strconv.ParseUint(fields[4], 0, 64); err == nil {
			s.Throttling = append(s.Throttling, throttlingNow(name, reasons&^idleReason != 0))
		}
	}
}

// throttlingNow reports whether a device is throttled at present, as a count of 1 or 0.
func throttlingNow(device string, throttled bool) *tilthv1.Throttling {
	now := &tilthv1.Throttling{Source: device + " now"}
	if throttled {
		now.Events = 1
	}
	return now
}

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
		s.Throttling = append(s.Throttling, throttlingNow(device, *h.Slowed))
	}
	if h.Errors != nil {
		s.MemoryErrors = append(s.MemoryErrors, &tilthv1.MemoryErrors{Memory: device, Corrected: h.Errors.Corrected, Uncorrected: h.Errors.Uncorrected})
	}
	s.Impairments = append(s.Impairments, h.Impairments...)
	return s
}

// device is the name of the device in surroundings.
const device = "gpu"
