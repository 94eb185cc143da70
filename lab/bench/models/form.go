package models

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/modelzoo"
)

// form is a variant of the benchmark.
type form struct {
	// name selects the form on the command line; file is the name of its result file.
	name, file string
	// models lists the default models.
	models []string
	// write holds the flags for writing built-in models, and kinds lists the packages of each model.
	write []string
	kinds []kind
	// extents fixes extents that packages leave open.
	extents map[string]int64
	// withoutOneDNN leaves out ONNX Runtime with oneDNN.
	withoutOneDNN bool
	// table writes a machine's results as Markdown tables.
	table func(out *strings.Builder, machine string, rows []result)
}

// kind is a way of compiling a model.
type kind struct {
	// schedules is its name in results. Tuned kinds are tuned first.
	schedules string
	arguments []string
	tuned     bool
	// floats is set if the package is compiled from the model before its quantisation.
	floats bool
}

// resultsName is the name of the first form's result file.
const resultsName = "models"

// forms lists the forms. The first is the default.
var forms = []form{
	{
		file: resultsName, models: modelzoo.Names(), table: writeTables,
		kinds: []kind{{schedules: untunedSchedules, arguments: []string{"--untuned"}}, {schedules: tunedSchedules, tuned: true}},
	},
	{
		name: "decoding", file: "decoding", models: []string{"gpt-small", "llama-small"}, table: writeDecoding,
		write: []string{"--past", "--last"}, kinds: decodingKinds(),
		extents: map[string]int64{"sequence": 1, pastExtent: tokensBefore},
	},
	{
		name: "fast", file: "fast", table: besides("Fast numerics", "default", "fast"),
		models: []string{"resnet-50", "mobilenet-v2", "vgg-16", "bert-base", "bert-small", "vit-b-16", "gpt-small", "llama-small", "lstm"},
		kinds: []kind{
			{schedules: "default", arguments: []string{"--untuned"}},
			{schedules: "fast", arguments: []string{"--untuned", "--numerics", "fast"}},
		},
	},
	{
		name: "quantised", file: "quantised", table: besides("Models in bytes", "float32", "int8"), write: []string{"--quantise"},
		models: []string{
			"resnet-18", "resnet-50", "resnet-50-v2", "mobilenet-v1", "mobilenet-v2", "mobilenet-v3", "efficientnet-b0", "squeezenet-v1.1", "shufflenet-v2",
			"densenet-121", "inception-v3", "vgg-16", "regnet-y-400mf", "resnext-50-32x4d",
		},
		kinds:         []kind{{schedules: "float32", arguments: []string{"--untuned"}, floats: true}, {schedules: "int8", arguments: []string{"--untuned"}}},
		withoutOneDNN: true, // with it, ONNX Runtime takes seconds for an execution
	},
}

// formOf returns the form of a name.
func formOf(name string) (form, bool) {
	k := slices.IndexFunc(forms, func(f form) bool { return f.name == name })
	if k < 0 {
		return form{}, false
	}
	return forms[k], true
}

// quantisedSuffix ends the file names of quantised models. Their float twins lack it.
const quantisedSuffix = "_int8"

// tokensBefore is the number of tokens that precede the timed one.
const tokensBefore = 128

// decodingKinds returns the formats of a decoder's weights.
func decodingKinds() []kind {
	shape := []string{"--untuned", "--shape", fmt.Sprintf("batch=1,sequence=1..32:1,%s=0..%d", pastExtent, tokensBefore)}
	return []kind{
		{schedules: "32 bits", arguments: shape},
		{schedules: "16 bits", arguments: append(slices.Clone(shape), "--numerics", "fast")},
		{schedules: "8 bits", arguments: append(slices.Clone(shape), "--numerics", "fast", "--weights", "int8")},
		{schedules: "4 bits", arguments: append(slices.Clone(shape), "--numerics", "fast", "--weights", "int4")},
	}
}
