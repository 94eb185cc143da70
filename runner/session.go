// Package runner measures candidates on a device: it downloads what a builder compiled, verifies and times each candidate
// in a harness process, and reports the measurements.
package runner

import (
	"context"
	"strconv"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Plan is what to measure: a module of candidates of one workload.
type Plan struct {
	// Harness is the harness's executable for the target; Reference and Candidates are the shared objects.
	Harness, Reference, Candidates string
	// Emulator, when set, is the command that runs programs of the target, e.g. qemu-aarch64 -L /usr/aarch64-linux-gnu.
	Emulator []string
	Threads  int
	// Seed selects the data.
	Seed uint64
	// ReferenceCache is a file that keeps the reference's results between calls; empty = none.
	ReferenceCache string
	// BestSeconds is the latency of the best candidate known; 0 = none.
	BestSeconds float64
	// Scratch is the folder the harness runs in.
	Scratch string
	Limits  Limits
}

// Outcome is what became of one candidate.
type Outcome struct {
	// Kernel is the candidate's id.
	Kernel string
	// Error is NONE, WRONG_RESULT, CRASH or TIMEOUT.
	Error         tilthv1.ErrorClass
	Message       string
	Samples       []float64
	RelativeError float64
	RunSeconds    float64
}

// Measure runs the plan and calls report with the outcome of each kernel of the module, in its order, as soon as it is
// known. A candidate that crashes or hangs costs only itself. The error means that the device is at fault or ctx ended: the
// candidates not reported are not measured.
func Measure(ctx context.Context, p Plan, report func(Outcome)) error {
	p.Limits = p.Limits.withDefaults(p.BestSeconds)
	m := &measurement{plan: p, current: -1, report: report}
	for done := false; !done; {
		var err error
		if done, err = m.process(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p Plan) command(first int) []string {
	float := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	command := append(append([]string{}, p.Emulator...), p.Harness,
		"--threads", strconv.Itoa(p.Threads), "--seed", strconv.FormatUint(p.Seed, 10), "--first", strconv.Itoa(first),
		"--memory-bytes", strconv.FormatInt(p.Limits.MemoryBytes, 10),
		"--incumbent-seconds", float(p.BestSeconds), "--sample-seconds", float(p.Limits.Sample.Seconds()),
		"--budget-seconds", float(p.Limits.Budget.Seconds()), "--samples", strconv.Itoa(p.Limits.Samples))
	if p.ReferenceCache != "" {
		command = append(command, "--reference-cache", p.ReferenceCache)
	}
	return append(command, p.Reference, p.Candidates)
}
