package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/internal/atomicfile"
	"github.com/tilth-dev/tilth/lab/bench/simulate"
)

// config is what is measured.
type config struct {
	tilth, out, data string
	rate             float64
	time             time.Duration
	devices, records []int
	// recordsDevices is how many devices there are while the number of records changes.
	recordsDevices int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	c, err := parse(args)
	if err != nil {
		return err
	}
	var s sweep
	for _, n := range c.devices {
		if err := s.measure(ctx, c, &s.Devices, float64(n), c.arguments(n)); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp(c.data, "tilth-scale-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	there := 0
	for _, n := range c.records {
		arguments := append(c.arguments(c.recordsDevices), "--data", dir, "--records", strconv.Itoa(max(0, n-there)))
		if err := s.measure(ctx, c, &s.Records, float64(n), arguments); err != nil {
			return err
		}
		there = max(n, there) + s.Records[len(s.Records)-1].Details.Results
	}
	return s.write(c.out)
}

func parse(args []string) (c config, err error) {
	flags := flag.NewFlagSet("scale", flag.ContinueOnError)
	flags.StringVar(&c.tilth, "tilth", "bin/tilth", "the program")
	flags.StringVar(&c.out, "out", "scale.svg", "drawing to write; FILE.json has the figures")
	flags.StringVar(&c.data, "data", "", "folder for the trackers' data (default a temporary one)")
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

// arguments are those of a run. Builds and trials are so fast that ten devices give the rate.
func (c config) arguments(devices int) []string {
	return []string{
		"simulate", "--devices", strconv.Itoa(devices), "--builders", "100", "--jobs", "100", "--rate", fmt.Sprint(c.rate), "--time", c.time.String(),
		"--build-time", "50ms", "--trial-time", "250us", "--mean-life", "0",
	}
}

// sweep is all that was measured.
type sweep struct {
	Devices []point `json:"devices"`
	Records []point `json:"records"`
}

// point is one run.
type point struct {
	At      float64          `json:"at"`
	Details simulate.Details `json:"details"`
}

// measure adds a run to a series.
func (s *sweep) measure(ctx context.Context, c config, series *[]point, at float64, arguments []string) error {
	dir, err := os.MkdirTemp("", "tilth-scale-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "details.json")
	cmd := exec.CommandContext(ctx, c.tilth, append(arguments, "--details", file)...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	content, err := os.ReadFile(file)
	p := point{At: at}
	if err = errors.Join(err, json.Unmarshal(content, &p.Details)); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	*series = append(*series, p)
	return nil
}

func (s *sweep) write(path string) error {
	err := atomicfile.Write(strings.TrimSuffix(path, filepath.Ext(path))+".json", func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(s)
	})
	if err != nil {
		return err
	}
	return atomicfile.Write(path, func(w io.Writer) error {
		_, err := io.WriteString(w, s.draw())
		return err
	})
}
