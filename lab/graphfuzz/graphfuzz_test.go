// Package graphfuzz tests the whole compiler with random models. It draws ONNX graphs, compiles them with random
// legal schedules, and compares the results with the reference evaluation and, if installed, ONNX Runtime.
package graphfuzz

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
)

var (
	graphs = flag.Int("graphs", 0, "how many graphs to draw; 0 = 48, and 12 with -short")
	seed   = flag.Uint64("seed", 1, "the seed of the first graph; the others follow")
	ortDir = flag.String("ort", os.Getenv("TILTH_ORT"), "folder in which onnxruntime-node is installed, to compare with ONNX Runtime as well")
	keep   = flag.String("keep", "", "folder for the models and inputs of graphs that fail")
)

// drawn returns the number of graphs per test.
func drawn() int {
	switch {
	case *graphs > 0:
		return *graphs
	case testing.Short():
		return 12
	}
	return 48
}

// batch is the number of graphs in a package.
const batch = 24

// Tolerances for float32 results of a dozen operators with random schedules, relative to the largest element.
const (
	ownTolerance = 2e-4
	ortTolerance = 1e-3
	// fastTolerance allows for bfloat16 rounding in several consecutive operators.
	fastTolerance = 0x1p-5
)

func newCompiler(t *testing.T) *Compiler {
	t.Helper()
	tc, machine := toolchaintest.Native(t, 2)
	objects, err := toolchaintest.Objects()
	if err != nil {
		t.Fatal(err)
	}
	return &Compiler{Target: machine, Toolchain: tc, Parallel: 2, Objects: objects, Numerics: schedule.Default}
}

// TestRandomGraphs compiles random graphs with random schedules. A failure prints the seed, which -seed N -graphs 1
// repeats. Bytes are stored in the format of the machine's multiplication instructions.
func TestRandomGraphs(t *testing.T) {
	c := newCompiler(t)
	checkGraphs(t, c, kind{peer: startPeer(t), tolerance: ownTolerance, storage: cpu.Backend{}.Storage(c.Target, c.Numerics, array.Invalid)})
}

// TestRandomGraphsEvaluateAsInONNXRuntime compares without compiling, many graphs in little time.
func TestRandomGraphsEvaluateAsInONNXRuntime(t *testing.T) {
	p := startPeer(t)
	if p == nil {
		t.Skip("needs -ort, a folder with onnxruntime-node")
	}
	for k := range drawn() {
		c := Generate(*seed + uint64(k))
		own, err := frontend.Import(c.Model, frontend.Options{})
		if err != nil {
			report(t, c, fmt.Errorf("import: %w", err))
			continue
		}
		got, err := evaluate.Program(own, c.Inputs)
		if err == nil {
			err = checkFolded(c, got, ownTolerance)
		}
		if err != nil {
			report(t, c, err)
			continue
		}
		p.check(t, c, got)
	}
	t.Logf("ONNX Runtime: %d graphs compared, %d refused, %d ended it", p.compared, p.refused, p.ended)
}

// TestRandomGraphsOnOtherTargets runs graphs on the reference kernels, on the simulated GPU, on an OpenCL device, and
// on boards under emulators.
func TestRandomGraphsOnOtherTargets(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: compiles the graphs once for each target")
	}
	for name, emulator := range map[string]string{
		"reference": "", "gpu-sim": "", "opencl": "",
		"sifive-u74":  "qemu-riscv64 -L /usr/riscv64-linux-gnu",
		"riscv64":     "qemu-riscv64 -cpu rv64,v=true,vext_spec=v1.0,vlen=128 -L /usr/riscv64-linux-gnu",
		"arm32":       "qemu-arm -cpu cortex-a7 -L /usr/arm-linux-gnueabihf",
		"arm64":       "qemu-aarch64 -L /usr/aarch64-linux-gnu",
		"neoverse-v1": "qemu-aarch64 -cpu max,sve256=on,sve512=off -L /usr/aarch64-linux-gnu",
	} {
		t.Run(name, func(t *testing.T) {
			c := newCompiler(t)
			var err error
			if c.Target, err = registry.Target(name, 2); err != nil {
				t.Fatal(err)
			}
			c.Emulator = strings.Fields(emulator)
			storage, err := registry.Storage(c.Target, c.Numerics, array.Invalid)
			if err != nil {
				t.Fatal(err)
			}
			checkGraphs(t, c, kind{tolerance: ownTolerance, storage: storage, share: 8})
		})
	}
}

// TestRandomGraphsOfFastNumerics stores factors of products in 16 bits, in each storage format of programs in turn,
// and compares with the evaluation of the same program.
func TestRandomGraphsOfFastNumerics(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: compiles the graphs once for each kind of storage")
	}
	c := newCompiler(t)
	c.Numerics = schedule.Fast
	for _, storage := range []array.Storage{{Type: array.BFloat16}, {Type: array.BFloat16, Constants: true}, {Type: array.Float16, Constants: true}} {
		checkGraphs(t, c, kind{storage: storage, tolerance: fastTolerance})
	}
}

// kind selects the compilation and comparison of graphs.
type kind struct {
	storage array.Storage
	// peer is optional.
	peer      *peer
	tolerance float64
	// share divides the number of graphs, where they compile slowly.
	share int
}

func checkGraphs(t *testing.T, c *Compiler, as kind) {
	t.Helper()
	graphs := drawn() / max(1, as.share)
	for first := 0; first < graphs; first += batch {
		var cases []*Case
		for k := first; k < min(first+batch, graphs); k++ {
			cases = append(cases, Generate(*seed+uint64(k)))
		}
		checkBatch(t, c, as, cases)
		t.Logf("%d graphs, up to seed %d", len(cases), cases[len(cases)-1].Seed)
	}
	if p := as.peer; p != nil {
		t.Logf("ONNX Runtime: %d graphs compared, %d refused, %d ended it", p.compared, p.refused, p.ended)
	}
}

// checkBatch runs cases together. After a failure it runs them one by one to identify the culprit.
func checkBatch(t *testing.T, c *Compiler, as kind, cases []*Case) {
	t.Helper()
	var programs []*program.Program
	var inputs []map[string]*array.Array
	for _, one := range cases {
		p, err := frontend.Import(one.Model, frontend.Options{Storage: as.storage})
		if err != nil {
			report(t, one, fmt.Errorf("import: %w", err))
			return
		}
		programs, inputs = append(programs, p), append(inputs, one.Inputs)
	}
	results, err := c.Run(t.Context(), programs, inputs, cases[0].Seed)
	if err != nil && len(cases) > 1 {
		for _, one := range cases {
			checkBatch(t, c, as, []*Case{one})
		}
		return
	}
	for k, one := range cases {
		if err != nil {
			report(t, one, err)
			continue
		}
		checkCase(t, as, one, programs[k], results[k])
	}
}

func checkCase(t *testing.T, as kind, c *Case, p *program.Program, got map[string]*array.Array) {
	t.Helper()
	want, err := evaluate.Program(p, c.Inputs)
	if err == nil {
		err = c.Compare(got, want, as.tolerance)
	}
	if err != nil {
		report(t, c, fmt.Errorf("against the evaluator: %w", err))
		return
	}
	if as.storage.Type == array.Invalid {
		if err := checkFolded(c, got, as.tolerance); err != nil {
			report(t, c, fmt.Errorf("against the evaluation node by node: %w", err))
			return
		}
	}
	if as.peer != nil {
		as.peer.check(t, c, got)
	}
}

// checkFolded compares results with those of the model with known inputs, whose nodes are evaluated one by one.
func checkFolded(c *Case, got map[string]*array.Array, tolerance float64) error {
	known, graph := *c.Model, *c.Model.Graph
	known.Graph, graph.Inputs, graph.Initializers = &graph, nil, slices.Clone(graph.Initializers)
	for name, a := range c.Inputs {
		graph.Initializers = append(graph.Initializers, &onnx.Tensor{Name: name, Value: a})
	}
	p, err := frontend.Import(&known, frontend.Options{})
	if err != nil {
		return err
	}
	want, err := evaluate.Program(p, nil)
	if err != nil {
		return err
	}
	return c.Compare(got, want, tolerance)
}

func report(t *testing.T, c *Case, err error) {
	t.Helper()
	t.Errorf("seed %d: %v\n%s", c.Seed, err, c.Text())
	keepCase(t, c)
}

// keepCase saves the model and its inputs in the folder of -keep.
func keepCase(t *testing.T, c *Case) {
	t.Helper()
	if *keep == "" {
		return
	}
	dir := filepath.Join(*keep, fmt.Sprint(c.Seed))
	if err := c.Save(dir); err != nil {
		t.Errorf("keeping seed %d: %v", c.Seed, err)
	}
}

func TestSeedGivesTheSameGraph(t *testing.T) {
	for seed := range uint64(drawn()) {
		if a, b := Generate(seed), Generate(seed); a.Text() != b.Text() || string(a.Model.Encode()) != string(b.Model.Encode()) {
			t.Fatalf("seed %d differs:\n%s\n%s", seed, a.Text(), b.Text())
		}
	}
}
