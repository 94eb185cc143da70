package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/tuner/jobclient"
)

// numericsFlag bounds the algorithms that a command may use.
type numericsFlag struct{ level schedule.Numerics }

func (f *numericsFlag) add(c *cobra.Command) {
	f.level = schedule.Default
	c.Flags().Var(f, "numerics", "algorithms: strict (direct sums), default (also Winograd, Strassen, split TF32) or fast (also bfloat16)")
}

// Set implements pflag.Value.
func (f *numericsFlag) Set(text string) (err error) {
	f.level, err = schedule.ParseNumerics(text)
	return err
}

// String implements pflag.Value.
func (f *numericsFlag) String() string { return f.level.String() }

// Type implements pflag.Value.
func (f *numericsFlag) Type() string { return "string" }

// storageFlag selects the storage type of float32 factors: a smaller float type with fast numerics, or
// integer weights.
type storageFlag struct{ text, weights string }

func (f *storageFlag) add(c *cobra.Command) {
	c.Flags().StringVar(&f.text, "storage", "",
		"with --numerics fast: storage type of weights, and of activations where it helps: bfloat16, float16 (three more bits, but activations overflow above 65504) or float32 (default bfloat16)")
}

// addWeights adds --weights.
func (f *storageFlag) addWeights(c *cobra.Command) {
	c.Flags().StringVar(&f.weights, "weights", "float",
		"storage of weights and embedding tables: float, int8 (one scale per channel) or int4 (matrices with one scale per 32 weights; others as int8); dequantized in registers, or, for matrices with --numerics fast, multiplied with 8-bit activations")
}

// weightBits maps values of --weights to array.Storage.WeightBits.
var weightBits = map[string]int64{"": 0, "float": 0, "int8": 8, "int4": 4}

// check rejects a type without effect.
func (f *storageFlag) check(numerics schedule.Numerics) error {
	if f.text != "" && numerics < schedule.Fast {
		return usagef("--storage needs --numerics fast: other numerics keep float32")
	}
	return nil
}

// on returns the storage for a target: the flag's, or the backend's preference.
func (f *storageFlag) on(t *target.Target, numerics schedule.Numerics) (array.Storage, error) {
	as, err := jobclient.Storage(t, numerics, f.text, weightBits[f.weights])
	if err != nil && f.text != "" {
		err = usagef("--%w", err)
	}
	return as, err
}

// always returns the storage that the flags request for every target and numerics level.
func (f *storageFlag) always() array.Storage { return array.Storage{WeightBits: weightBits[f.weights]} }

// anywhere returns the storages of all targets with numerics below fast.
func (f *storageFlag) anywhere() []array.Storage {
	var all []array.Storage
	for _, bytes := range []array.DType{array.Invalid, array.Int8, array.Uint8} {
		s := f.always()
		s.Bytes = bytes
		all = append(all, s)
	}
	return all
}

// kept describes how many weights are stored as integers, or returns nil if not requested.
func (f *storageFlag) kept(count [2]int) *aot.Weights {
	if weightBits[f.weights] == 0 {
		return nil
	}
	return &aot.Weights{Type: f.weights, Quantised: count[0], All: count[1]}
}

// objectiveFlag is --objective, the quantity to minimize.
type objectiveFlag struct {
	name  string
	given *pflag.Flag
}

const latency = "latency"

func (f *objectiveFlag) add(c *cobra.Command) {
	c.Flags().StringVar(&f.name, "objective", latency, "what to minimize: latency, or energy (the device needs a meter)")
	f.given = c.Flags().Lookup("objective")
}

// objective returns the name used by targets.
func (f *objectiveFlag) objective() string {
	if f.name == latency {
		return ""
	}
	return f.name
}

// localTarget returns localTarget's result with the objective. That of a target file applies unless the flag is given.
func (f *objectiveFlag) localTarget(ctx context.Context, name string, threads int, compiler string) (*target.Target, *toolchain.Toolchain, error) {
	t, tc, err := localTarget(ctx, name, threads, compiler)
	if err != nil {
		return nil, nil, err
	}
	if f.given.Changed || t.Objective == "" {
		t = t.WithObjective(f.objective())
	}
	return t, tc, t.Check()
}
