package runner

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// energyTree returns a /sys with the given files.
func energyTree(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, content := range files {
		m[name] = &fstest.MapFile{Data: []byte(content + "\n")}
	}
	return m
}

const rapl, hwmon = "class/powercap/", "class/hwmon/"

func TestMetersOfMachines(t *testing.T) {
	server := map[string]string{
		rapl + "intel-rapl:0/name": "package-0", rapl + "intel-rapl:0/energy_uj": "1", rapl + "intel-rapl:0/max_energy_range_uj": "262143328850",
		rapl + "intel-rapl:1/name": "package-1", rapl + "intel-rapl:1/energy_uj": "2",
		rapl + "intel-rapl:0:0/name": "core", rapl + "intel-rapl:0:0/energy_uj": "3",
		rapl + "intel-rapl-mmio:0/name": "package-0", rapl + "intel-rapl-mmio:0/energy_uj": "4",
	}
	laptop := map[string]string{
		rapl + "intel-rapl:0/name": "package-0", rapl + "intel-rapl:0/energy_uj": "1", rapl + "intel-rapl:1/name": "psys", rapl + "intel-rapl:1/energy_uj": "2",
	}
	board := map[string]string{
		hwmon + "hwmon1/name": "ina3221", hwmon + "hwmon1/power1_input": "5000000", hwmon + "hwmon1/power1_label": "VDD_IN",
		hwmon + "hwmon1/power2_input": "2000000", hwmon + "hwmon1/power2_label": "VDD_CPU",
	}
	for _, c := range []struct {
		name, meter string
		files       map[string]string
		want        string
	}{
		{"a server's packages, without their parts and their other doors", "", server, "powercap with 2 counters"},
		{"a laptop's whole platform", "", laptop, "powercap/psys with 1 counters"},
		{"a laptop's processor", "powercap", laptop, "powercap with 1 counters"},
		{"an AMD server's sockets", "", map[string]string{
			hwmon + "hwmon0/name": "amd_energy", hwmon + "hwmon0/energy1_input": "5", hwmon + "hwmon0/energy1_label": "Ecore000",
			hwmon + "hwmon0/energy65_input": "6", hwmon + "hwmon0/energy65_label": "Esocket0",
		}, "amd_energy with 1 counters"},
		{"a board's only sensor", "", map[string]string{hwmon + "hwmon0/name": "ina226", hwmon + "hwmon0/power1_input": "5000000"}, "ina226, a sensor"},
		{"a board with several rails", "", board, "choose one by --meter: ina3221/VDD_IN, ina3221/VDD_CPU"},
		{"one of them", "ina3221/VDD_CPU", board, "ina3221/VDD_CPU, a sensor"},
		{"a name that is none", "psu", board, `no energy meter "psu"; it has ina3221/VDD_IN, ina3221/VDD_CPU`},
		{"no meter", "", nil, "has no energy meter"},
		{"no number", "", map[string]string{hwmon + "hwmon0/name": "ina226", hwmon + "hwmon0/power1_input": "-3"}, "energy meter ina226: "},
	} {
		m, err := OpenMeter(energyTree(c.files), c.meter)
		var got string
		switch {
		case err != nil:
			got = err.Error()
		case m.sensor != "":
			got = m.Name() + ", a sensor"
		default:
			got = m.Name() + " with " + strconv.Itoa(len(m.counters)) + " counters"
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// machine returns a /sys in a folder whose files can change.
func machine(t *testing.T, files map[string]string) (sys fs.FS, write func(name, content string)) {
	t.Helper()
	dir := t.TempDir()
	write = func(name, content string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range files {
		write(name, content)
	}
	return os.DirFS(dir), write
}

func TestCountersAreAddedUpAndBeginAgain(t *testing.T) {
	sys, write := machine(t, map[string]string{
		rapl + "intel-rapl:0/name": "package-0", rapl + "intel-rapl:0/energy_uj": "9000000", rapl + "intel-rapl:0/max_energy_range_uj": "10000000",
		rapl + "intel-rapl:1/name": "package-1", rapl + "intel-rapl:1/energy_uj": "500000",
	})
	m, err := OpenMeter(sys, "")
	if err != nil {
		t.Fatal(err)
	}
	outer := time.Now()
	r, err := m.Begin()
	if err != nil {
		t.Fatal(err)
	}
	inner := time.Now()
	write(rapl+"intel-rapl:0/energy_uj", "1000000") // 2 J later
	write(rapl+"intel-rapl:1/energy_uj", "1500000") // 1 J later
	shortest := time.Since(inner).Seconds()
	watts, err := r.End()
	longest := time.Since(outer).Seconds()
	if err != nil || watts*longest < 3 || watts*shortest > 3*(1+1e-9) {
		t.Errorf("%v W for 3 J in %v to %v s, %v", watts, shortest, longest, err)
	}
	r, err = m.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.End(); err == nil || !strings.Contains(err.Error(), "says 0 W") {
		t.Errorf("a counter that stands still: %v", err)
	}
}

func TestPowerSensorsAreSampled(t *testing.T) {
	sys, write := machine(t, map[string]string{hwmon + "hwmon0/name": "ina226", hwmon + "hwmon0/power1_input": "2500000"})
	m, err := OpenMeter(sys, "")
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if watts, err := r.End(); err != nil || math.Abs(watts-2.5) > 1e-9 {
		t.Errorf("%v W, want 2.5, %v", watts, err)
	}
	if watts, err := m.Power(t.Context()); err != nil || watts != 2.5 {
		t.Errorf("%v W now, want 2.5, %v", watts, err)
	}
	write(hwmon+"hwmon0/power1_input", "broken")
	if _, err := m.Power(t.Context()); err == nil {
		t.Error("a sensor that says no number is read")
	}
	if _, err := m.Begin(); err == nil || !strings.Contains(err.Error(), "energy meter ina226") {
		t.Errorf("a sensor that says no number: %v", err)
	}
}

// ticking is a /sys whose counter grows by a joule with each read.
type ticking struct {
	fstest.MapFS
	microjoules int
}

// Open implements fs.FS.
func (t *ticking) Open(name string) (fs.File, error) {
	if strings.HasSuffix(name, "energy_uj") {
		t.microjoules += 1_000_000
		return energyTree(map[string]string{name: strconv.Itoa(t.microjoules)}).Open(name)
	}
	return t.MapFS.Open(name)
}

// ReadFile hides the map's ReadFile, so that Open is used.
func (t *ticking) ReadFile(name string) ([]byte, error) {
	f, err := t.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

func TestPowerIsDerivedFromCounters(t *testing.T) {
	counter := map[string]string{rapl + "intel-rapl:0/name": "package-0", rapl + "intel-rapl:0/energy_uj": "1000000"}
	m, err := OpenMeter(energyTree(counter), "")
	if err != nil {
		t.Fatal(err)
	}
	if watts, err := m.Power(t.Context()); err == nil {
		t.Errorf("a counter that stands still tells %v W", watts)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Power(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	if m, err = OpenMeter(&ticking{MapFS: energyTree(counter)}, ""); err != nil {
		t.Fatal(err)
	}
	if watts, err := m.Power(t.Context()); err != nil || !(watts > 0 && watts <= 10) {
		t.Errorf("%v W now, want a joule in a tenth of a second at least, %v", watts, err)
	}
}
