package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/model"
	"github.com/tilth-dev/tilth/internal/atomicfile"
	"github.com/tilth-dev/tilth/internal/show"
)

func newModel(a *app) *cobra.Command {
	var batch int
	var seed uint64
	var output string
	c := &cobra.Command{
		Use: "model NAME", Short: "Write a built-in test model (random weights) as ONNX",
		Long: "Write a built-in test model, with random weights, as ONNX. The same name, batch and seed give the same file.\n\nModels: " +
			strings.Join(model.Names(), ", ") + ".",
		Example: `  tilth model resnet-18
  tilth model mobilenet-v2 --batch 4 -o mobilenet.onnx`,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: model.Names(),
	}
	c.Flags().IntVar(&batch, "batch", 1, "images in a batch")
	c.Flags().Uint64Var(&seed, "seed", 1, "seed of the weights")
	c.Flags().StringVarP(&output, "output", "o", "", "`file` to write (default NAME.onnx)")
	return a.leaf(c, func(_ context.Context, args []string) error {
		if batch < 1 {
			return usagef("--batch %d: want at least 1", batch)
		}
		m, err := model.Build(args[0], batch, seed)
		if err != nil {
			return err
		}
		data := m.Encode()
		if output == "" {
			output = args[0] + ".onnx"
		}
		if err := atomicfile.Write(output, data); err != nil {
			return err
		}
		if output != os.Stdout.Name() {
			fmt.Fprintf(a.stderr, "wrote %s (%s)\n", output, show.Bytes(int64(len(data))))
		}
		return nil
	})
}
