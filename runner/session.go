// Package runner measures candidates on a device: it downloads what a builder compiled, verifies and times each candidate
// in a harness process, and reports the measurements.
package runner

import (
	"context"
	"fmt"
	"strconv"

	"github.com/tilth-dev/tilth/internal/stat"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Plan is what to measure: candidates of one workload.
type Plan struct {
	// Harness is the harness's executable for the target; Reference and Candidates are the shared objects.
	Harness, Reference string
	Candidates         []string
	// Kernels are the ids of the candidates to measure; empty = all that are in the objects.
	Kernels []string
	// Finalists take turns, in the order of Kernels; there are at most 8.
	Finalists bool
	// Emulator, when set, is the command that runs programs of the target, e.g. qemu-aarch64 -L /usr/aarch64-linux-gnu.
	Emulator []string
	Threads  int
	// Seed selects the data.
	Seed uint64
	// ReferenceCache is a file that keeps the reference's results between calls; empty = none.
	ReferenceCache string
	// BestSeconds is the latency of the best candidate known; 0 = none. BestSamples are its samples where they are known.
	BestSeconds float64
	BestSamples []float64
	// Calibration remembers the device's calibrations between plans; nil = each plan for itself.
	Calibration *Calibration
	// Scratch is the folder the harness runs in.
	Scratch string
	Limits  Limits
}

// Outcome is what became of one candidate.
type Outcome struct {
	// Kernel is the candidate's id.
	Kernel string
	// Error is NONE, WRONG_RESULT, CRASH or TIMEOUT.
	Error   tilthv1.ErrorClass
	Message string
	// Samples are seconds of one execution each, in the order taken.
	Samples       []float64
	RelativeError float64
	RunSeconds    float64
	// CalibrationRatio says how calm the device was: time of the calibration kernel over the best known; 0 = not known.
	CalibrationRatio float64
}

// Measure runs the plan and calls report with the outcome of each kernel, in their order, as soon as it is known and the device is
// known to have been calm, or never to become so. A candidate that crashes or hangs costs only itself. The error means that the
// device is at fault or ctx ended: the candidates not reported are not measured.
func Measure(ctx context.Context, p Plan, report func(Outcome)) error {
	if p.Finalists && len(p.Kernels) > mostFinalists {
		return fmt.Errorf("harness: %d finalists, at most %d can take turns", len(p.Kernels), mostFinalists)
	}
	p.Limits = p.Limits.withDefaults(p.BestSeconds, p.Finalists)
	if p.Calibration == nil {
		p.Calibration = &Calibration{}
	}
	m := &measurement{plan: p, current: -1, report: report}
	for done := false; !done; {
		var err error
		if done, err = m.process(ctx); err != nil {
			return err
		}
	}
	return nil
}

const mostFinalists = 8

// command is the harness's command line for the kernels that have no outcome yet.
func (p Plan) command(outcomes []*Outcome) []string {
	float := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	high, spread := p.incumbent()
	command := append(append([]string{}, p.Emulator...), p.Harness,
		"--threads", strconv.Itoa(p.Threads), "--seed", strconv.FormatUint(p.Seed, 10),
		"--memory-bytes", strconv.FormatInt(p.Limits.MemoryBytes, 10),
		"--incumbent-median", float(p.BestSeconds), "--incumbent-seconds", float(high), "--incumbent-spread", float(spread),
		"--calibration-seconds", float(p.Calibration.BestSeconds()), "--patience-seconds", float(p.Limits.Patience.Seconds()),
		"--sample-seconds", float(p.Limits.Sample.Seconds()),
		"--budget-seconds", float(p.Limits.Budget.Seconds()), "--samples", strconv.Itoa(p.Limits.Samples),
		"--least-samples", strconv.Itoa(p.Limits.LeastSamples))
	if p.ReferenceCache != "" {
		command = append(command, "--reference-cache", p.ReferenceCache)
	}
	for _, id := range p.Kernels {
		command = append(command, "--kernel", id)
	}
	command = append(command, p.left(outcomes)...)
	return append(append(command, p.Reference), p.Candidates...)
}

// left tells the harness which kernels are done.
func (p Plan) left(outcomes []*Outcome) []string {
	var done []string
	first := 0
	for k, o := range outcomes {
		if o == nil {
			continue
		}
		first = max(first, k+1)
		done = append(done, "--without", strconv.Itoa(k))
	}
	if p.Finalists {
		return append(done, "--finalists", "1")
	}
	return []string{"--first", strconv.Itoa(first)}
}

// quartilesNormal is the distance of a normal distribution's quartiles in standard deviations.
const quartilesNormal = 1.349

// incumbent is what a candidate races against: the upper end of the best one's interval, and the standard deviation of its samples.
func (p Plan) incumbent() (high, spread float64) {
	if len(p.BestSamples) == 0 {
		return p.BestSeconds, 0
	}
	low, _, up := stat.Quartiles(p.BestSamples)
	return stat.MedianInterval(p.BestSamples).High, (up - low) / quartilesNormal
}
