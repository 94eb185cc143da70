package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/internal/humanize"
)

func newJobsPackage(a *app) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use: "package JOB", Short: "Have a builder compile the model of an ended job, and fetch the package",
		Long: `Have a builder compile the model of an ended job with the best records, and fetch the
package. The job must have been submitted as a model, by the tracker's page or by gRPC.
Tasks without a record get their default schedule. A package that was made before is
fetched again. If the command is interrupted, the builder continues.`,
		Example: "  tilth jobs package job-00000001 -o resnet18.tar",
	}
	c.Flags().StringVarP(&output, "output", "o", "", "`package` to write; - is standard output (default MODEL.tar)")
	return a.onJob(c, func(ctx context.Context, tracker *client.Client, id string) error {
		made, err := tracker.MakePackage(ctx, id, waitPrinter(a))
		if err != nil {
			return err
		}
		if output == "" {
			output = filepath.Base(made.GetSpec().GetName())
		}
		file := made.GetResult().GetOutputs()
		if err := a.fetchFile(ctx, tracker, file, output); err != nil {
			return err
		}
		fmt.Fprintf(a.stderr, "wrote %s (%s), made by %s in %s\n",
			fileName(output), humanize.Bytes(int64(file.GetSizeBytes())), made.GetResult().GetDevice(), made.GetId())
		return nil
	})
}
