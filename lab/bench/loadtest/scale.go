package loadtest

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/internal/filesystem"
)

// TrackerCommand is the laboratory command that serves a simulation's tracker.
const TrackerCommand = "simulate-tracker"

// config is a measured configuration.
type config struct {
	out              string
	rate             float64
	time             time.Duration
	devices, records []int
	// recordsDevices is the number of devices while the number of records varies.
	recordsDevices int
}

// Scale measures the cost of a result over the numbers of devices and records, and draws a chart. It starts this
// program again, with TrackerCommand, as the tracker. It writes details as JSON beside the chart.
func Scale(ctx context.Context, args []string) error {
	c, err := parse(args)
	if err != nil {
		return err
	}
	var s sweep
	for _, n := range c.devices {
		if err := s.measure(ctx, &s.Devices, float64(n), c.simulation(n)); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "tilth-scale-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	there := 0
	for _, n := range c.records {
		o := c.simulation(c.recordsDevices)
		o.Dir, o.Records = dir, max(0, n-there)
		if err := s.measure(ctx, &s.Records, float64(n), o); err != nil {
			return err
		}
		there = max(n, there) + s.Records[len(s.Records)-1].Details.Results
	}
	return s.write(c.out)
}

func parse(args []string) (c config, err error) {
	flags := flag.NewFlagSet("scale", flag.ContinueOnError)
	flags.StringVar(&c.out, "out", "docs/scale.svg", "drawing to write; FILE.json has the figures")
	flags.Float64Var(&c.rate, "rate", 20000, "results a second, over all devices")
	flags.DurationVar(&c.time, "time", 20*time.Second, "how long each run measures")
	flags.IntVar(&c.recordsDevices, "records-devices", 100, "devices while the number of records changes")
	devices := flags.String("devices", "10,100,1000,10000", "numbers of devices")
	records := flags.String("records", "10000,100000,1000000,10000000", "numbers of records, growing")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	if c.devices, err = numbers(*devices); err != nil {
		return c, err
	}
	c.records, err = numbers(*records)
	return c, err
}

func numbers(list string) (out []int, err error) {
	for _, text := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is not a list of numbers", list)
		}
		out = append(out, n)
	}
	return out, nil
}

// simulation returns the options of a run. Builds and trials are so fast that ten devices reach the rate.
func (c config) simulation(devices int) Options {
	return Options{
		Devices: devices, Builders: 100, Jobs: 100, Rate: c.rate, Time: c.time, Warmup: 5 * time.Second,
		BuildTime: 50 * time.Millisecond, TrialTime: 250 * time.Microsecond, Seed: 1,
		Failures: Failures{Build: 0.03, Crash: 0.02, Infra: 0.001},
	}
}

// sweep holds all measurements.
type sweep struct {
	Devices []point `json:"devices"`
	Records []point `json:"records"`
}

// point holds one run.
type point struct {
	At      float64 `json:"at"`
	Details Details `json:"details"`
}

// measure adds a run to a series.
func (s *sweep) measure(ctx context.Context, series *[]point, at float64, o Options) error {
	d, err := Run(ctx, o)
	if err != nil {
		return fmt.Errorf("simulate %d devices and %d records: %w", o.Devices, o.Records, err)
	}
	*series = append(*series, point{At: at, Details: *d})
	return nil
}

func (s *sweep) write(path string) error {
	err := filesystem.WriteFile(strings.TrimSuffix(path, filepath.Ext(path))+".json", func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(s)
	})
	if err != nil {
		return err
	}
	return filesystem.WriteFile(path, func(w io.Writer) error {
		_, err := io.WriteString(w, s.draw())
		return err
	})
}
