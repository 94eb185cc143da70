package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/tuner/jobclient"
)

const jobsSubmitLong = `Submit a job and print its id.

With --dry-run, nothing is submitted. The command prints the request in protobuf JSON,
for any gRPC client of tilth.v1.JobService/SubmitJob. The request is for --target (this
machine by default) with the toolchain of --compiler, and no tracker is contacted; with
--device it is for that device of the tracker's farm. The same models and flags give the
same request with the same request_id: sent twice, it creates one job.`

type jobsSubmit struct {
	*app
	flags            clientFlags
	tune             tuneFlags
	target, compiler string
	dryRun           bool
}

func newJobsSubmit(a *app) *cobra.Command {
	s := &jobsSubmit{app: a}
	c := &cobra.Command{
		Use: "submit MODEL.onnx...", Short: "Submit a job and print its id", Long: jobsSubmitLong,
		Example: `  tilth jobs submit resnet18.onnx --time 30m --device rack=3
  tilth jobs submit resnet18.onnx --name 'resnet, 8 threads' --threads 8
  tilth jobs watch $(tilth jobs submit resnet18.onnx)
  tilth jobs submit resnet18.onnx --trials 500 --dry-run > request.json`,
		Args: cobra.MinimumNArgs(1),
	}
	s.flags.add(c)
	s.tune.add(c)
	c.Flags().BoolVar(&s.dryRun, "dry-run", false, "print the request as JSON, and submit nothing")
	targetFlag(c, &s.target, "with --dry-run: what to tune for")
	compilerFlag(c, &s.compiler)
	s.jsonFlag(c)
	return a.leaf(c, func(ctx context.Context, args []string) error {
		if err := s.tune.check(len(args)); err != nil {
			return err
		}
		for _, name := range []string{"target", "compiler"} {
			switch changed := c.Flags().Changed(name); {
			case changed && !s.dryRun:
				return usagef("--%s requires --dry-run: the farm's devices and builders determine the target; choose with --device", name)
			case changed && s.tune.device != "":
				return usagef("--%s and --device both select the target: use only one", name)
			}
		}
		if err := s.tune.kernels.pin(ctx, s.compiler, false); err != nil {
			return err
		}
		if s.dryRun && s.tune.device == "" {
			return s.printHere(ctx, args)
		}
		tracker, err := s.flags.dial(a)
		if err != nil {
			return err
		}
		defer tracker.Close()
		if s.dryRun {
			return s.printFor(ctx, tracker, args)
		}
		return s.submit(ctx, tracker, args)
	})
}

func (s *jobsSubmit) submit(ctx context.Context, tracker *client.Client, paths []string) error {
	j, err := s.tune.submit(ctx, tracker, paths, nil)
	if err != nil {
		return err
	}
	s.tune.kernels.warn(ctx, s.stderr, j.GetSpec())
	s.tune.printSeeds(s.app, j.GetSpec())
	if w := j.GetWait(); w.GetNothingCanRun() {
		fmt.Fprintf(s.stderr, "%s is waiting: %s\n", j.GetId(), w.GetMessage())
	}
	return s.printResult(newJobRow(j), "%s\n", j.GetId())
}

// printHere prints the request for a target by name, without contacting a tracker.
func (s *jobsSubmit) printHere(ctx context.Context, paths []string) error {
	machine, _, err := s.tune.low.localTarget(ctx, s.target, s.tune.threads, s.compiler)
	if err != nil {
		return err
	}
	return s.print(paths, &client.Device{Target: machine})
}

// printFor prints the request for a device of a farm.
func (s *jobsSubmit) printFor(ctx context.Context, tracker *client.Client, paths []string) error {
	device, err := tracker.FindTarget(ctx, s.tune.device, s.tune.threads, s.tune.low.objective())
	if err != nil {
		return err
	}
	return s.print(paths, device)
}

func (s *jobsSubmit) print(paths []string, device *client.Device) error {
	if err := s.tune.readSeeds(""); err != nil {
		return err
	}
	objective, err := s.tune.loader(paths)(device.Target)
	if err != nil {
		return err
	}
	text, err := jobclient.RequestText(jobclient.SpecFor(objective, s.tune.options(owner()), device))
	if err != nil {
		return err
	}
	_, err = s.stdout.Write(text)
	return err
}
