package main

import (
	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/schedule"
)

// numericsFlag bounds the algorithms that a command may use.
type numericsFlag struct {
	text string
	// level is what the text says, once it was checked.
	level schedule.Numerics
}

func (f *numericsFlag) add(c *cobra.Command) {
	c.Flags().StringVar(&f.text, "numerics", schedule.Default.String(),
		"algorithms allowed: strict (direct sums), default (also Winograd, Strassen, and float32 in two pieces of TF32) or fast (also rounded products, and on GPUs weights and activations in bfloat16)")
}

// check reads the flag.
func (f *numericsFlag) check() (err error) {
	if f.level, err = schedule.ParseNumerics(f.text); err != nil {
		return usagef("--numerics %s: want strict, default or fast", f.text)
	}
	return nil
}
