package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/model"
	"github.com/tilth-dev/tilth/internal/atomicfile"
	"github.com/tilth-dev/tilth/internal/show"
)

func newModel(a *app) *cobra.Command {
	var batch int64
	var seed uint64
	var output string
	c := &cobra.Command{
		Use: "model NAME", Short: "Write a built-in test model (random weights) as ONNX",
		Long: "Write a built-in test model, with random weights, as ONNX. The same name, batch and seed give the same file.\n\nModels: " +
			strings.Join(model.Names(), ", ") + ".",
		Example: `  tilth model resnet-18
  tilth model mobilenet-v2 --batch 4 -o mobilenet.onnx`,
		Args:      cobra.ExactArgs(1),
		ValidArgs: model.Names(),
	}
	c.Flags().Int64Var(&batch, "batch", 1, "images in a batch")
	c.Flags().Uint64Var(&seed, "seed", 1, "seed of the weights")
	c.Flags().StringVarP(&output, "output", "o", "", "`file` to write (default NAME.onnx)")
	return a.leaf(c, func(_ context.Context, args []string) error {
		m, err := model.Build(args[0], batch, seed)
		if err != nil {
			return &usageError{err}
		}
		if output == "" {
			output = args[0] + ".onnx"
		}
		data := m.Encode()
		if err := atomicfile.Write(output, func(w io.Writer) error { _, err := w.Write(data); return err }); err != nil {
			return err
		}
		fmt.Fprintf(a.stderr, "wrote %s (%s)\n", output, show.Bytes(int64(len(data))))
		return nil
	})
}
