package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/aot/profile"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/runner/packagerun"
)

// runFarmFlags selects the farm and the device for packages.
type runFarmFlags struct {
	trackerFlags
	device string
	limit  time.Duration
	wait   waitFlag
	log    logFlag
}

func (f *runFarmFlags) add(c *cobra.Command) {
	f.trackerFlags.add(c, "")
	c.Flags().StringVar(&f.device, "device", "", "`device`, device class or label of the farm, such as rack=3 (default any that matches)")
	c.Flags().DurationVar(&f.limit, "limit", 0, "longest time on the farm's device (default 10m)")
	atLeast(c, 0, "limit")
	f.wait.add(c)
	f.log.add(c, slog.LevelWarn)
}

func (f *runFarmFlags) check() error {
	switch {
	case f.addr == "" && (f.device != "" || f.limit != 0):
		return usagef("--device and --limit are for farms: name one with --tracker")
	case f.addr == "" && f.wait.waits:
		return usagef("--wait is for farms: name one with --tracker")
	}
	return nil
}

// run runs packages on the farm and returns the finished job.
func (f *runFarmFlags) run(ctx context.Context, a *app, r client.Run) (*tilthv1.Job, error) {
	tracker, err := f.dial(f.log.logger(a.stderr))
	if err != nil {
		return nil, err
	}
	defer tracker.Close()
	return f.runOn(ctx, a, tracker, r)
}

func (f *runFarmFlags) runOn(ctx context.Context, a *app, tracker *client.Client, r client.Run) (*tilthv1.Job, error) {
	r.Packages = slices.Clone(r.Packages)
	for i, path := range r.Packages {
		path, done, err := a.inputFile(path)
		if err != nil {
			return nil, err
		}
		defer done()
		r.Packages[i] = path
		manifest, err := aot.ReadManifest(path)
		if err != nil {
			return nil, err
		}
		if r.Target != nil && r.Target.Threads() != manifest.Target.Threads() {
			return nil, fmt.Errorf("package %s is for %d threads, %s for %d: compile both for the same number", r.Packages[0], r.Target.Threads(), path, manifest.Target.Threads())
		}
		r.Target = manifest.Target
	}
	r.Device, r.Limit, r.Owner = f.device, f.limit, owner()
	r.Patience, r.Waits = f.wait.patience(a), waitPrinter(a)
	job, err := tracker.RunPackages(ctx, r, func(j *tilthv1.Job) {
		fmt.Fprintf(a.stderr, "runs on the farm as %s\n", j.GetId())
	})
	if ctx.Err() != nil {
		err = parting(err) // it describes the state of the job
	}
	return job, f.wait.hint(err)
}

// waitPrinter prints each reason why a run waits, once.
func waitPrinter(a *app) func(*tilthv1.Wait) {
	var said tilthv1.WaitReason
	return func(w *tilthv1.Wait) {
		if w.GetReason() == said {
			return
		}
		if said = w.GetReason(); w != nil {
			fmt.Fprintln(a.stderr, "waiting: "+w.GetMessage())
		}
	}
}

// runFarm runs the package on a device of the farm and returns its results.
func (r *runCommand) runFarm(ctx context.Context, path string) error {
	file, removed, err := r.verify.verified(path)
	if err != nil {
		return err
	}
	defer removed()
	tracker, err := r.farm.dial(r.farm.log.logger(r.stderr))
	if err != nil {
		return err
	}
	defer tracker.Close()
	inputs, done, err := r.inputFile(r.inputs)
	if err != nil {
		return err
	}
	defer done()
	wanted := client.Run{Packages: []string{file}, Inputs: inputs, Outputs: r.outputs != ""}
	if r.printTime {
		wanted.Repeat, wanted.Number = r.repeat, r.number
	}
	if r.profile {
		wanted.Profile = r.repeat
	}
	job, err := r.farm.runOn(ctx, r.app, tracker, wanted)
	if err != nil {
		return err
	}
	if r.outputs != "" {
		if err := r.fetchFile(ctx, tracker, job.GetResult().GetOutputs(), r.outputs); err != nil {
			return err
		}
	}
	result, err := r.farmResult(path, job)
	if err != nil {
		return err
	}
	return r.print(result)
}

// fetchFile downloads an artifact to a file.
func (a *app) fetchFile(ctx context.Context, tracker *client.Client, ref *tilthv1.ArtifactRef, path string) error {
	dir, err := os.MkdirTemp("", "tilth-fetch-")
	if err != nil {
		return fmt.Errorf("fetching %s: %w", fileName(path), err)
	}
	defer os.RemoveAll(dir)
	fetched, err := tracker.Fetch(ctx, ref, dir)
	if err != nil {
		return err
	}
	f, err := os.Open(fetched)
	if err != nil {
		return fmt.Errorf("fetching %s: %w", fileName(path), err)
	}
	defer f.Close()
	return a.writeFile(path, func(w io.Writer) error {
		_, err := io.Copy(w, f)
		return err
	})
}

// farmResult converts the result of the job.
func (r *runCommand) farmResult(path string, job *tilthv1.Job) (runResult, error) {
	result := runResult{Package: path, Device: job.GetResult().GetDevice(), Job: job.GetId()}
	for _, p := range job.GetResult().GetPackages() {
		manifest, err := aot.DecodeManifest(p.GetManifest())
		if err != nil {
			return result, fmt.Errorf("job %s: the package's description: %w", job.GetId(), err)
		}
		result.Outputs = manifest.Outputs
		if samples := p.GetSamplesSeconds(); len(samples) > 0 {
			result.Time = r.summarize(samples)
		}
		if len(p.GetProfile()) > 0 {
			result.Profile = &profile.Profile{}
			if err := json.Unmarshal(p.GetProfile(), result.Profile); err != nil {
				return result, fmt.Errorf("job %s: the profile: %w", job.GetId(), err)
			}
		}
	}
	return result, nil
}

// runServerName is the hidden command of a runner's child processes.
const runServerName = "run-packages"

// newRunServer returns the command that runs the packages requested on standard input.
func newRunServer(a *app) *cobra.Command {
	c := &cobra.Command{Use: runServerName, Short: "Serve tilth runner", Hidden: true}
	return a.leaf(c, func(ctx context.Context, _ []string) error {
		a.serves = true
		return packagerun.Serve(ctx, a.stdin, a.binary)
	})
}
