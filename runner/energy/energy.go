package energy

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Meter is one of a machine's.
type Meter struct {
	sys  fs.FS
	name string
	// counters are files of microjoules, whose values are added; each starts again at 0 after its range, if it has
	// one.
	counters []counter
	// sensor is a file of microwatts; empty where there are counters.
	sensor string
}

type counter struct {
	file string
	// microjoules is the counter's range; 0 = none is told.
	microjoules float64
}

// Windows are for how long a kernel runs while a meter is read. Counters are brought up to date about every
// millisecond, sensors of power after up to 140 ms.
const (
	counterWindow = 300 * time.Millisecond
	sensorWindow  = 1500 * time.Millisecond
	// between are the looks at a sensor.
	between = 5 * time.Millisecond
)

// Window is for how long a kernel runs while the meter is read.
func (m *Meter) Window() time.Duration {
	if m.sensor != "" {
		return sensorWindow
	}
	return counterWindow
}

// Name is what Open calls the meter by.
func (m *Meter) Name() string { return m.name }

// ErrNone says that a machine has no meter.
var ErrNone = errors.New("this machine has no energy meter: neither /sys/class/powercap nor /sys/class/hwmon shows one")

// Open opens the meter of a name, or, with none, the machine's own choice: the whole platform's, the processors', or
// the only sensor of power. sys is the kernel's /sys. The error says which meters there are.
func Open(sys fs.FS, name string) (*Meter, error) {
	all := meters(sys)
	if len(all) == 0 {
		return nil, ErrNone
	}
	k := 0
	if name != "" {
		k = slices.IndexFunc(all, func(m *Meter) bool { return m.name == name })
	} else if all[0].sensor != "" && len(all) > 1 {
		k = -1 // which of a board's rails feeds the processor, nobody here knows
	}
	if k < 0 {
		names := make([]string, len(all))
		for i, m := range all {
			names[i] = m.name
		}
		if name == "" {
			return nil, fmt.Errorf("this machine has several power sensors: choose one by --meter: %s", strings.Join(names, ", "))
		}
		return nil, fmt.Errorf("this machine has no energy meter %q; it has %s", name, strings.Join(names, ", "))
	}
	if err := all[k].probe(); err != nil {
		return nil, err
	}
	return all[k], nil
}

// Machine opens a meter of this machine; see Open.
func Machine(name string) (*Meter, error) { return Open(os.DirFS("/sys"), name) }

// meters are all of a machine, those of the most first.
func meters(sys fs.FS) (list []*Meter) {
	platform, packages := powercap(sys)
	list = append(list, platform...)
	if len(packages) > 0 {
		list = append(list, &Meter{sys: sys, name: "powercap", counters: packages})
	}
	files, _ := fs.Glob(sys, "class/hwmon/hwmon*/energy*_input") // the pattern is right
	for _, chip := range byChip(sys, files) {
		list = append(list, &Meter{sys: sys, name: chip.name, counters: chip.sockets()})
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
			list = append(list, &Meter{sys: sys, name: name, sensor: file})
		}
	}
	return list
}

// powercap are the zones of the kernel's power capping: that of the whole platform, and those of processor packages.
func powercap(sys fs.FS) (platform []*Meter, packages []counter) {
	files, _ := fs.Glob(sys, "class/powercap/*/energy_uj")
	for _, file := range files {
		zone := path.Dir(file)
		if strings.Count(path.Base(zone), ":") != 1 || strings.Contains(path.Base(zone), "mmio") {
			continue // a part of another zone, or another door to one
		}
		c := counter{file: file}
		c.microjoules, _ = number(sys, path.Join(zone, "max_energy_range_uj")) // 0 where it is not told
		if text(sys, path.Join(zone, "name")) == "psys" {
			platform = append(platform, &Meter{sys: sys, name: "powercap/psys", counters: []counter{c}})
		} else {
			packages = append(packages, c)
		}
	}
	return platform, packages
}

// chip is a device of hwmon with some of its files.
type chip struct {
	sys   fs.FS
	name  string
	files []string
}

func byChip(sys fs.FS, files []string) (chips []chip) {
	for _, file := range files {
		name := text(sys, path.Join(path.Dir(file), "name"))
		last := len(chips) - 1
		if last >= 0 && path.Dir(chips[last].files[0]) == path.Dir(file) {
			chips[last].files = append(chips[last].files, file)
		} else {
			chips = append(chips, chip{sys, name, []string{file}})
		}
	}
	return chips
}

// label is what a chip calls a sensor.
func (c chip) label(file string) string {
	of, _, _ := strings.Cut(path.Base(file), "_")
	return text(c.sys, path.Join(path.Dir(file), of+"_label"))
}

// sockets are the chip's counters of whole processors, or all where it names none.
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

func text(sys fs.FS, name string) string {
	content, err := fs.ReadFile(sys, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
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
