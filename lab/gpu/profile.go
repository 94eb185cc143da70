package gpu

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/internal/humanize"
)

// profiled is the output of 'tilth run --profile --json'.
type profiled struct {
	timed
	Profile struct {
		Peak struct {
			FlopsPerSecond float64            `json:"flops_per_s"`
			BytesPerSecond float64            `json:"bytes_per_s"`
			Matrices       map[string]float64 `json:"matrices"`
		} `json:"peak"`
		Calls  []call `json:"calls"`
		Device struct {
			Launches   int      `json:"launches"`
			Matrices   []string `json:"matrices"`
			GapSeconds float64  `json:"gap_s"`
		} `json:"device"`
	} `json:"profile"`
}

// call is a kernel call; calls are sorted slowest first.
type call struct {
	Task    string  `json:"task"`
	Seconds float64 `json:"time_s"`
	Flop    float64 `json:"flop"`
}

const (
	// slowest is the number of calls in a result.
	slowest = 3
	// matricesNote lists the formats of the matrix instructions used.
	matricesNote = "matrices"
)

// explain records a package's slowest kernels and the formats of its matrix instructions.
func (b *suite) explain(ctx context.Context, pkg string, r *result) error {
	var p profiled
	if err := b.ask(ctx, &p, "run", pkg, "--profile"); err != nil {
		return err
	}
	r.Values["launches"], r.Values["gap_s"] = float64(p.Profile.Device.Launches), p.Profile.Device.GapSeconds
	r.Notes[matricesNote] = cmp.Or(strings.Join(p.Profile.Device.Matrices, ", "), "none")
	var calls []string
	for _, c := range p.Profile.Calls[:min(slowest, len(p.Profile.Calls))] {
		calls = append(calls, fmt.Sprintf("%s %s (%s TFLOP/s)", c.Task, humanize.Seconds(c.Seconds), humanize.TFLOPS(c.Flop, c.Seconds)))
	}
	r.Notes["slowest"] = strings.Join(calls, "; ")
	return nil
}
