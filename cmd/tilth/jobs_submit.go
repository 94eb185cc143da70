package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func newJobsSubmit(a *app) *cobra.Command {
	var flags clientFlags
	var tune tuneFlags
	var asJSON bool
	c := &cobra.Command{
		Use: "submit MODEL.onnx...", Short: "Submit a job and print its id",
		Example: `  tilth jobs submit resnet18.onnx --time 30m --device rack=3
  tilth jobs submit resnet18.onnx --name 'resnet, 8 threads' --threads 8
  tilth jobs watch $(tilth jobs submit resnet18.onnx)`,
		Args: cobra.MinimumNArgs(1),
	}
	flags.add(c)
	tune.add(c)
	jsonFlag(c, &asJSON)
	return a.leaf(c, func(ctx context.Context, args []string) error {
		if err := tune.check(len(args)); err != nil {
			return err
		}
		tracker, err := flags.dial(a)
		if err != nil {
			return err
		}
		defer tracker.Close()
		j, err := tune.submit(ctx, tracker, args, nil)
		if err != nil {
			return err
		}
		if w := j.GetWait(); w.GetNothingCanRun() {
			fmt.Fprintf(a.stderr, "%s waits: %s\n", j.GetId(), w.GetMessage())
		}
		if asJSON {
			return writeJSON(a.stdout, newJobRow(j))
		}
		_, err = fmt.Fprintln(a.stdout, j.GetId())
		return err
	})
}
