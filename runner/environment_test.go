package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// surroundingsTree returns a /sys with the given files.
func surroundingsTree(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, content := range files {
		m[name] = &fstest.MapFile{Data: []byte(content + "\n")}
	}
	return m
}

// words formats surroundings compactly.
func words(s *tilthv1.Surroundings) string {
	var parts []string
	for _, t := range s.GetTemperatures() {
		parts = append(parts, fmt.Sprintf("%s %g C", t.GetSensor(), t.GetCelsius()))
	}
	for _, c := range s.GetClocks() {
		parts = append(parts, fmt.Sprintf("%s %g of %g GHz %s", c.GetDomain(), c.GetHertz()/1e9, c.GetMostHertz()/1e9, c.GetGovernor()))
	}
	for _, t := range s.GetThrottling() {
		parts = append(parts, fmt.Sprintf("%s throttled %d", t.GetSource(), t.GetEvents()))
	}
	for _, p := range s.GetPower() {
		parts = append(parts, fmt.Sprintf("%s %g W", p.GetMeter(), p.GetWatts()))
	}
	return strings.Join(parts, "; ")
}

func TestRead(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		gpus  string
		want  string
	}{
		{"a virtual machine that shows nothing", nil, "", ""},
		{"a board", map[string]string{
			"class/thermal/thermal_zone0/type":                    "cpu-thermal",
			"class/thermal/thermal_zone0/temp":                    "48312",
			"class/thermal/thermal_zone10/type":                   "gpu-thermal",
			"class/thermal/thermal_zone10/temp":                   "41000",
			"class/thermal/thermal_zone2/temp":                    "no number",
			"class/hwmon/hwmon0/name":                             "cpu-thermal",
			"class/hwmon/hwmon0/temp1_input":                      "48312",
			"devices/system/cpu/cpufreq/policy0/affected_cpus":    "0 1 2 3",
			"devices/system/cpu/cpufreq/policy0/scaling_cur_freq": "600000",
			"devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq": "1800000",
			"devices/system/cpu/cpufreq/policy0/scaling_governor": "schedutil",
			"devices/system/cpu/cpufreq/policy4/affected_cpus":    "4 5 7",
			"devices/system/cpu/cpufreq/policy4/scaling_cur_freq": "2400000",
		}, "", "cpu-thermal 48.312 C; gpu-thermal 41 C; cpu 0-3 0.6 of 1.8 GHz schedutil; cpu 4-5,7 2.4 of 0 GHz "},
		{"a server", map[string]string{
			"class/hwmon/hwmon1/name":                                         "coretemp",
			"class/hwmon/hwmon1/temp1_input":                                  "63000",
			"class/hwmon/hwmon1/temp1_label":                                  "Package id 0",
			"devices/system/cpu/cpu0/thermal_throttle/core_throttle_count":    "3",
			"devices/system/cpu/cpu1/thermal_throttle/core_throttle_count":    "4",
			"devices/system/cpu/cpu0/thermal_throttle/package_throttle_count": "0",
		}, "0, 57, 1980, 1980, 0x0000000000000001\n1, 88, 990, 1980, 0x0000000000000040\n2, [N/A], [N/A], [N/A], [N/A]\nnonsense",
			"coretemp Package id 0 63 C; gpu 0 57 C; gpu 1 88 C; gpu 0 1.98 of 1.98 GHz ; gpu 1 0.99 of 1.98 GHz ; " +
				"cpu core throttled 7; cpu package throttled 0; gpu 0 now throttled 0; gpu 1 now throttled 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &SurroundingsReader{Sys: surroundingsTree(c.files), GPUs: func(context.Context) (string, error) {
				if c.gpus == "" {
					return "", errors.New("no tool")
				}
				return c.gpus, nil
			}}
			if got := words(r.Read(t.Context())); got != c.want {
				t.Errorf("read %s, want %s", got, c.want)
			}
		})
	}
}

func TestReadingsOfLargeMachinesAreBounded(t *testing.T) {
	files := map[string]string{}
	for n := range 500 {
		files[fmt.Sprintf("class/thermal/thermal_zone%d/temp", n)] = "1000"
	}
	if n := len((&SurroundingsReader{Sys: surroundingsTree(files)}).Read(t.Context()).GetTemperatures()); n != maxReadings {
		t.Errorf("%d temperatures", n)
	}
}

func TestThisMachineIsRead(t *testing.T) {
	t.Logf("this machine shows: %s", words(MachineSurroundings().Read(t.Context())))
}

func TestMeterIsRead(t *testing.T) {
	r := &SurroundingsReader{Sys: surroundingsTree(nil), Power: func(context.Context) (string, float64) { return "powercap", 12.5 }}
	if got := words(r.Read(t.Context())); got != "powercap 12.5 W" {
		t.Errorf("read %q", got)
	}
}
