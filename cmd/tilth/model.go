package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/modelzoo"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/tuner/jobclient"
)

const modelLong = `Write a built-in test model, with random weights, as ONNX; without a name, list
the models. The same name, options and seed give the same file.`

// modelResult describes a written model in JSON.
type modelResult struct {
	Model     string `json:"model"`
	File      string `json:"file"`
	SizeBytes int64  `json:"size_bytes"`
}

func newModel(a *app) *cobra.Command {
	var o modelzoo.Options
	var output string
	c := &cobra.Command{
		Use: "model [NAME]", Short: "Write a built-in test model (random weights) as ONNX", Long: modelLong,
		Example: `  tilth model
  tilth model resnet-18
  tilth model mobilenet-v2 --batch 4 -o mobilenet.onnx
  tilth model resnet-50 --quantise -o resnet50-int8.onnx
  tilth model bert-small --seq 64
  tilth model llama-small --bits 4 -o llama4.onnx
  tilth model llama-small --past --last -o decoder.onnx`,
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: modelzoo.Names(),
	}
	c.Flags().Int64Var(&o.Batch, "batch", 1, "images or sequences in a batch")
	c.Flags().Int64Var(&o.Seq, "seq", 0, "tokens in a sequence, of models that read text (default: see the list)")
	c.Flags().BoolVar(&o.Open, "open", false, "leave the batch and the tokens open, as the symbols batch and sequence")
	c.Flags().BoolVar(&o.Past, "past", false, "keys and values of earlier tokens as inputs, of all as outputs; batch, sequence and past are symbols (decoders)")
	c.Flags().BoolVar(&o.Last, "last", false, "score the token after the last one alone (decoders)")
	c.Flags().BoolVar(&o.Fused, "fused", false, "with --past: attention and normalisation as operators of ONNX Runtime (llama models)")
	c.Flags().Uint64Var(&o.Seed, "seed", 1, "seed of the weights")
	c.Flags().BoolVar(&o.Quantise, "quantise", false, "in bytes: activations with one scale, weights with one for each channel (models for images)")
	c.Flags().Int64Var(&o.Bits, "bits", 0, "quantise matmul weights to 4 or 8 bits, with a scale per block of 32 (models that read text)")
	c.Flags().StringVarP(&output, "output", "o", "", "`file` to write, - for standard output (default NAME.onnx)")
	a.tableFlags(c)
	return a.leaf(c, func(_ context.Context, args []string) error {
		if len(args) == 0 {
			return listModels(a)
		}
		if o.Batch == 0 || c.Flags().Changed("seq") && o.Seq == 0 || c.Flags().Changed("bits") && o.Bits == 0 {
			return usagef("--batch, --seq and --bits want positive numbers")
		}
		return writeModel(a, args[0], o, output)
	})
}

func listModels(a *app) error {
	return list(a, modelzoo.List(), humanize.NewTable("MODEL", ">TOKENS", "WHAT IT IS"), func(d modelzoo.Description) []string {
		tokens := humanize.Missing
		if d.Seq > 0 {
			tokens = strconv.FormatInt(d.Seq, 10)
		}
		return []string{d.Name, tokens, d.About}
	})
}

func writeModel(a *app, name string, o modelzoo.Options, output string) error {
	if err := modelzoo.Check(name, o); err != nil {
		return &usageError{err}
	}
	output = cmp.Or(output, name+".onnx")
	if err := onlyOutput(output, map[string]bool{"--json": a.asJSON}); err != nil {
		return err
	}
	var size int64
	err := a.writeFile(output, func(w io.Writer) (err error) {
		size, err = modelzoo.Write(w, name, o)
		return err
	})
	if err != nil {
		return err
	}
	if a.asJSON {
		return writeJSON(a.stdout, modelResult{Model: name, File: output, SizeBytes: size})
	}
	fmt.Fprintf(a.stderr, "wrote %s (%s)\n", fileName(output), humanize.Bytes(size))
	return nil
}

// modelServerName is the hidden command of the child processes of tuners and builders.
const modelServerName = "read-model"

// newModelServer returns the command that reads the model ordered on standard input.
func newModelServer(a *app) *cobra.Command {
	c := &cobra.Command{Use: modelServerName, Short: "Serve tilth tuner and builder", Hidden: true}
	return a.leaf(c, func(context.Context, []string) error {
		a.serves = true
		return jobclient.ServeModelReader(a.stdin, a.binary)
	})
}
