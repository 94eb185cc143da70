// This file reads the energy meters of a machine: energy counters (powercap, hwmon) and power sensors (hwmon, such as
// an INA219, INA226 or INA3221 on a board).

package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tilth-dev/tilth/internal/filesystem"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/stats"
)

// EnergyMeter is an energy meter of a machine.
type EnergyMeter struct {
	sys  fs.FS
	name string
	// counters lists files in microjoules, whose values are added. Each wraps to 0 after its range, if it has one.
	counters []counter
	// sensor is a file in microwatts; empty if there are counters.
	sensor string
}

type counter struct {
	file string
	// microjoules is the range of the counter; 0 if unknown.
	microjoules float64
}

// Windows are the durations for which a kernel runs while a meter is read. Counters update about every
// millisecond, power sensors up to every 140 ms.
const (
	counterWindow = 300 * time.Millisecond
	sensorWindow  = 1500 * time.Millisecond
	// between is the interval between readings of a sensor.
	between = 5 * time.Millisecond
)

// Window returns how long a kernel must run while the meter is read.
func (m *EnergyMeter) Window() time.Duration {
	if m.sensor != "" {
		return sensorWindow
	}
	return counterWindow
}

// Name returns the meter's name for Open.
func (m *EnergyMeter) Name() string { return m.name }

// ErrNoMeter means that a machine has no meter.
var ErrNoMeter = errors.New("this machine has no energy meter: neither /sys/class/powercap nor /sys/class/hwmon shows one")

// OpenMeter opens a meter by name. With an empty name it chooses the meter of the whole platform, of the
// processors, or the only power sensor. sys is the kernel's /sys. The error lists the existing meters.
func OpenMeter(sys fs.FS, name string) (*EnergyMeter, error) {
	all := meters(sys)
	if len(all) == 0 {
		return nil, ErrNoMeter
	}
	k := 0
	if name != "" {
		k = slices.IndexFunc(all, func(m *EnergyMeter) bool { return m.name == name })
	} else if all[0].sensor != "" && len(all) > 1 {
		k = -1 // it is unknown which of a board's rails feeds the processor
	}
	if k < 0 {
		names := humanize.Join(all, ", ", func(m *EnergyMeter) string { return m.name })
		if name == "" {
			return nil, fmt.Errorf("this machine has several power sensors: choose one by --meter: %s", names)
		}
		return nil, fmt.Errorf("this machine has no energy meter %q; it has %s", name, names)
	}
	if err := all[k].probe(); err != nil {
		return nil, err
	}
	return all[k], nil
}

// MachineMeter opens a meter of this machine; see Open.
func MachineMeter(name string) (*EnergyMeter, error) { return OpenMeter(os.DirFS("/sys"), name) }

// meters returns all meters of a machine, those with the widest scope first.
func meters(sys fs.FS) (list []*EnergyMeter) {
	platform, packages := powercap(sys)
	list = append(list, platform...)
	if len(packages) > 0 {
		list = append(list, &EnergyMeter{sys: sys, name: "powercap", counters: packages})
	}
	files, _ := fs.Glob(sys, "class/hwmon/hwmon*/energy*_input") // the pattern is valid
	for _, chip := range byChip(sys, files) {
		list = append(list, &EnergyMeter{sys: sys, name: chip.name, counters: chip.sockets()})
	}
	files, _ = fs.Glob(sys, "class/hwmon/hwmon*/power*_input")
	if len(files) == 0 {
		files, _ = fs.Glob(sys, "class/hwmon/hwmon*/power*_average")
	}
	for _, chip := range byChip(sys, files) {
		for _, file := range chip.files {
			name := chip.name
			if label := chip.label(file); label != "" || len(chip.files) > 1 {
				name += "/" + cmp.Or(label, path.Base(file))
			}
			list = append(list, &EnergyMeter{sys: sys, name: name, sensor: file})
		}
	}
	return list
}

// powercap returns the zones of the kernel's power capping: of the whole platform, and of processor packages.
func powercap(sys fs.FS) (platform []*EnergyMeter, packages []counter) {
	files, _ := fs.Glob(sys, "class/powercap/*/energy_uj")
	for _, file := range files {
		zone := path.Dir(file)
		if strings.Count(path.Base(zone), ":") != 1 || strings.Contains(path.Base(zone), "mmio") {
			continue // part of another zone, or an alias of one
		}
		c := counter{file: file}
		c.microjoules, _ = number(sys, path.Join(zone, "max_energy_range_uj")) // 0 if unknown
		if filesystem.Text(sys, path.Join(zone, "name")) == "psys" {
			platform = append(platform, &EnergyMeter{sys: sys, name: "powercap/psys", counters: []counter{c}})
		} else {
			packages = append(packages, c)
		}
	}
	return platform, packages
}

// chip is an hwmon device with some of its files.
type chip struct {
	sys   fs.FS
	name  string
	files []string
}

func byChip(sys fs.FS, files []string) (chips []chip) {
	for _, file := range files {
		name := filesystem.Text(sys, path.Join(path.Dir(file), "name"))
		last := len(chips) - 1
		if last >= 0 && path.Dir(chips[last].files[0]) == path.Dir(file) {
			chips[last].files = append(chips[last].files, file)
		} else {
			chips = append(chips, chip{sys, name, []string{file}})
		}
	}
	return chips
}

// label returns the chip's label of a sensor.
func (c chip) label(file string) string {
	of, _, _ := strings.Cut(path.Base(file), "_")
	return filesystem.Text(c.sys, path.Join(path.Dir(file), of+"_label"))
}

// sockets returns the chip's counters of whole processors, or all counters if none is labelled so.
func (c chip) sockets() (list []counter) {
	whole := slices.DeleteFunc(slices.Clone(c.files), func(file string) bool { return !strings.HasPrefix(c.label(file), "Esocket") })
	if len(whole) == 0 {
		whole = c.files
	}
	for _, file := range whole {
		list = append(list, counter{file: file})
	}
	return list
}

func number(sys fs.FS, name string) (float64, error) {
	content, err := fs.ReadFile(sys, name)
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(string(content)), 64)
	if err == nil && !(v >= 0) {
		err = fmt.Errorf("/sys/%s holds %q, want a number", name, content)
	}
	return v, err
}

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
	tick := time.Tick(between)
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
		case <-tick:
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
