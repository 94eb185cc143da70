package cuda

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/modulefile"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

const (
	// HealthVariable is the environment variable with the path of the management library, if it is not in the
	// system's search path.
	HealthVariable = "TILTH_NVML"
	usualHealth    = "libnvidia-ml.so.1"
	// readTimeout bounds a query, which takes about a second.
	readTimeout = time.Minute
)

// monitor implements backend.Monitor with a program that is built once.
type monitor struct {
	modulefile.Query
	program string
	gpu     *target.GPU
}

// Monitor implements backend.Monitored.
func (Backend) Monitor(ctx context.Context, tc *toolchain.Toolchain, t *target.Target, dir string) (backend.Monitor, error) {
	m := &monitor{Query: query(tc, t, dir, visible(t), "rates.c", "nvml.c", "monitor.c"), gpu: t.GPU}
	var err error
	if m.program, err = m.Build(ctx); err != nil {
		return nil, fmt.Errorf("building the card's monitor: %w", err)
	}
	return m, nil
}

// Name implements backend.Monitor.
func (m *monitor) Name() string { return fmt.Sprintf("card-1 %s %s", m.gpu.Model, m.gpu.ID) }

// Read implements backend.Monitor.
func (m *monitor) Read(ctx context.Context) (backend.Reading, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, readTimeout, fmt.Errorf("the driver has not answered for %v", readTimeout))
	defer cancel()
	library := cmp.Or(os.Getenv(HealthVariable), usualHealth)
	text, err := m.Run(ctx, m.program, library, m.gpu.ID, strconv.FormatInt(farBytes(m.gpu), 10))
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return backend.Reading{}, fmt.Errorf("reading the card: %w", err)
	}
	reading, err := parseReading(text)
	if err != nil {
		err = fmt.Errorf("reading the card: %w", err)
	}
	return reading, err
}

// parseReading parses the program's output.
func parseReading(text string) (reading backend.Reading, err error) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != 3 {
		return reading, fmt.Errorf("%d lines instead of 3", len(lines))
	}
	for k, samples := range []*[]float64{&reading.Compute, &reading.Memory} {
		for _, word := range strings.Fields(lines[k]) {
			seconds, err := strconv.ParseFloat(word, 64)
			if err != nil || !(seconds > 0) {
				return reading, fmt.Errorf("a sample of %q seconds", word)
			}
			*samples = append(*samples, seconds)
		}
		if len(*samples) == 0 {
			return reading, fmt.Errorf("no samples")
		}
	}
	reading.Health, err = health(lines[2])
	return reading, err
}
