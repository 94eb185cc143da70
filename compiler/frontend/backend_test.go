package frontend_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// backendCases is where Debian's libonnx-testdata puts ONNX's own tests of each operator; beside them are models that
// PyTorch exported.
const backendCases = "/usr/share/libonnx-testdata/data/node"

// beyond lists the cases that are refused, with a part of the reason that must be given.
var beyond = []struct{ pattern, reason string }{
	{"adam_multiple", "is missing"},
	{"training_dropout", "random numbers"},
	{"training_dropout_default*", "random numbers"},
	{"training_dropout_mask", "random numbers"},
	{"bernoulli*", "random numbers"},
	{"gradient_of_add*", "operators of domain"},
	{"cast*_STRING*", "string is not supported"},
	{"cast*BFLOAT16*", "u16"}, // the files hold the bits as u16
	{"identity_opt", "only tensors"},
	{"identity_sequence", "only tensors"},
	{"if_opt", "only tensors"},
	{"if_seq", "only tensors"},
	{"loop13_seq", "only tensors"},
	{"loop16_seq_none", "only tensors"},
	{"optional_*", "only tensors"},
	{"sequence_insert*", "only tensors"},
	{"sequence_map*", "only tensors"},
	{"sequence_model8", "open extent"},
	{"tfidfvectorizer*", "n-grams"},
	{"strnorm*", "string"},
}

func TestBackendCases(t *testing.T) {
	var dirs []string
	for _, kind := range []string{"node", "pytorch-operator", "pytorch-converted", "simple"} {
		found, err := filepath.Glob(filepath.Join(filepath.Dir(backendCases), kind, "test_*"))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			t.Fatal("libonnx-testdata is not installed: run scripts/packages.sh test")
		}
		dirs = append(dirs, found...)
	}
	for _, dir := range dirs {
		name := strings.TrimPrefix(filepath.Base(dir), "test_")
		t.Run(name, func(t *testing.T) { runCase(t, name, dir) })
	}
}

func runCase(t *testing.T, name, dir string) {
	m, sets, err := readCase(dir)
	for k := 0; err == nil && k < len(sets); k++ {
		if err = checkCase(m, sets[k], isParameter); err == nil {
			err = checkCase(m, sets[k], isNotFirst)
		}
	}
	reason := refusal(name)
	switch {
	case reason != "" && (err == nil || !strings.Contains(err.Error(), reason)):
		t.Errorf("got error %v, want one with %q", err, reason)
	case reason == "" && err != nil:
		t.Error(err)
	}
}

func readCase(dir string) (*onnx.Model, []onnx.DataSet, error) {
	m, err := onnx.ReadFile(filepath.Join(dir, "model.onnx"))
	if err != nil {
		return nil, nil, err
	}
	for _, v := range slices.Concat(m.Graph.Inputs, m.Graph.Outputs) {
		if v.Kind != "" { // its data set is no tensor
			return nil, nil, fmt.Errorf("%q is a %s: only tensors are supported", v.Name, v.Kind)
		}
	}
	sets, err := onnx.ReadDataSets(dir)
	return m, sets, err
}

// refusal is why a case is beyond this compiler; empty when it is not.
func refusal(name string) string {
	for _, b := range beyond {
		if ok, _ := filepath.Match(b.pattern, name); ok {
			return b.reason
		}
	}
	return ""
}

// checkCase runs a data set with some inputs made constants of the model, as exporters write them.
func checkCase(m *onnx.Model, set onnx.DataSet, known func(g *onnx.Graph, name string) bool) error {
	model, inputs := bindInputs(m, set.Inputs, known)
	p, err := frontend.Import(model, frontend.Options{Verify: true})
	if err != nil {
		return err
	}
	outs, err := evaluate.Program(p, inputs)
	if err != nil {
		return err
	}
	for k, want := range set.Outputs {
		name := m.Graph.Outputs[k].Name
		if err := modeltest.Compare(outs[name], want); err != nil {
			return fmt.Errorf("output %q: %w", name, err)
		}
	}
	return nil
}

// bindInputs makes initializers of the inputs that are known.
func bindInputs(m *onnx.Model, inputs []*array.Array, known func(g *onnx.Graph, name string) bool) (*onnx.Model, map[string]*array.Array) {
	g := *m.Graph
	g.Inputs = nil
	values := map[string]*array.Array{}
	for k, info := range m.Graph.Inputs {
		if k < len(inputs) && known(m.Graph, info.Name) {
			g.Initializers = append(slices.Clone(g.Initializers), &onnx.Tensor{Name: info.Name, Value: inputs[k]})
			continue
		}
		g.Inputs = append(g.Inputs, info)
		if k < len(inputs) {
			values[info.Name] = inputs[k]
		}
	}
	bound := *m
	bound.Graph = &g
	return &bound, values
}

// parameters are the operands that must be known when a model is compiled.
var parameters = map[string][]int{
	"Reshape": {1}, "Expand": {1}, "Tile": {1}, "Pad": {1, 2, 3}, "Slice": {1, 2, 3, 4}, "Split": {1}, "Squeeze": {1}, "Unsqueeze": {1},
	"ConstantOfShape": {0}, "Range": {0, 1, 2}, "Dropout": {1, 2}, "Loop": {0, 1}, "SequenceAt": {1}, "SequenceInsert": {2},
	"SequenceErase": {1}, "SplitToSequence": {1}, "CumSum": {1}, "OneHot": {1}, "TopK": {1}, "Compress": {1},
	"Resize": {1, 2, 3}, "Upsample": {1}, "MaxUnpool": {2}, "HannWindow": {0}, "HammingWindow": {0}, "BlackmanWindow": {0},
	"MelWeightMatrix": {0, 1, 2, 3, 4}, "NonZero": {0}, "Unique": {0}, "STFT": {1, 3}, "DFT": {1},
	"ReduceSum": {1}, "ReduceMean": {1}, "ReduceMax": {1}, "ReduceMin": {1}, "ReduceProd": {1}, "ReduceSumSquare": {1},
	"ReduceL1": {1}, "ReduceL2": {1}, "ReduceLogSum": {1}, "ReduceLogSumExp": {1},
}

// isNotFirst is for models in which only the first input is data, and the others are weights.
func isNotFirst(g *onnx.Graph, name string) bool {
	return name != g.Inputs[0].Name || isParameter(g, name)
}

// isParameter reports whether a node takes an input, or what is computed from it, as a parameter rather than as data:
// which shape, which part.
func isParameter(g *onnx.Graph, name string) bool {
	names := map[string]bool{name: true}
	for _, n := range g.Nodes {
		for k, input := range n.Inputs {
			if !names[input] {
				continue
			}
			if slices.Contains(parameters[n.Op], k) {
				return true
			}
			if n.Op == "Shape" || n.Op == "Size" {
				continue // known whatever the elements are
			}
			for _, output := range n.Outputs {
				names[output] = true
			}
		}
	}
	return false
}
