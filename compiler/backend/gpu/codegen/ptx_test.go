package codegen_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/codegen"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/macros"
	"github.com/tilth-dev/tilth/compiler/backend/gpusim"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { kerneltest.Main(m, 2) }

// batchSize is the number of workloads whose kernels are compiled together.
const batchSize = 10

// ptx compiles kernels for an NVIDIA GPU.
func ptx(t testing.TB, arch, text string) (string, error) {
	t.Helper()
	object, err := toolchaintest.Program(t, "clang-19", append(macros.NVPTXFlags(arch), "-w"), macros.NVPTX()+text)
	if err != nil {
		return "", err
	}
	made, err := os.ReadFile(object)
	if err != nil {
		t.Fatal(err)
	}
	return macros.BoundThreads(string(made))
}

// card returns the GPU that kernels are printed for. It requires a clang that supports PTX, such as Debian's.
func card(t *testing.T, b gpusim.Backend) *target.Target {
	t.Helper()
	if targets, err := exec.CommandContext(t.Context(), "clang-19", "--print-targets").Output(); err != nil || !strings.Contains(string(targets), "nvptx64") {
		t.Skip("there is no clang-19 with the target nvptx64")
	}
	on, err := b.Target(b.Targets()[0].Name, 1)
	if err != nil {
		t.Fatal(err)
	}
	return on
}

// entries matches the kernels of PTX.
var entries = regexp.MustCompile(`(?m)^\.visible \.entry|^\.entry`)

// chips returns architectures that have all instructions of kernels.
func chips(text string) []string {
	if strings.Contains(text, "WGMMA(") {
		return []string{"sm_90a"}
	}
	return []string{"sm_80", "sm_90"}
}

// TestEveryPointIsPTX checks that clang compiles the text of every point, which the simulated GPU has verified, with
// an entry per launch. If NVIDIA's assembler is available, it must accept the result, and the log counts spilling
// kernels.
func TestEveryPointIsPTX(t *testing.T) {
	b := gpusim.Backend{}
	on := card(t, b)
	tasks := append(modeltest.NarrowTasks(t, array.BFloat16), modeltest.NarrowTasks(t, array.Float16)...)
	size := batchSize
	if testing.Short() {
		size = 2
	}
	for name, draw := range kerneltest.Families(tasks) {
		t.Run(name, func(t *testing.T) {
			var spilled []usage
			kernels := 0
			rapid.Check(t, func(rt *rapid.T) {
				var helpers cprint.Declarations
				text, want := "", 0
				for n := range size {
					w := draw(rt).Merge()
					s := b.Space(w, on, schedule.Fast)
					s = s.Of(rapid.SampledFrom(s.Algorithms()).Draw(rt, "algorithm"))
					point := s.Default()
					if p, ok := s.Random(rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "point"), 0))); ok {
						point = p
					}
					made, err := s.Apply(point)
					if err != nil {
						rt.Fatal(err)
					}
					f, err := codegen.Lower(made, on.GPU)
					if err != nil {
						rt.Fatalf("%v\n%s%s", err, w.Text(), made.Trace())
					}
					for _, k := range codegen.Kernels(fmt.Sprintf("k%d", n), f, &helpers, macros.Text) {
						text += k.Text
						want++
					}
				}
				arch := rapid.SampledFrom(chips(text)).Draw(rt, "arch")
				made, err := ptx(t, arch, helpers.Text()+text)
				if err != nil {
					rt.Fatalf("%v\n%s", err, helpers.Text()+text)
				}
				if got := len(entries.FindAllString(made, -1)); got != want {
					rt.Fatalf("%d entries of %d launches", got, want)
				}
				if !hasAssembler(arch) {
					return
				}
				list, err := assemble(t, arch, made)
				if err != nil || len(list) != want {
					rt.Fatalf("%d of %d launches are assembled: %v\n%s", len(list), want, err, made)
				}
				kernels += want
				spilled = append(spilled, slices.DeleteFunc(list, func(u usage) bool { return u.spilled == 0 })...)
			})
			if kernels == 0 {
				t.Log("there is no ptxas for these chips: nothing is assembled")
				return
			}
			t.Logf("%d of %d kernels spill: %v", len(spilled), kernels, spilled)
		})
	}
}

// TestLiteralsOfAllIntegersArePTX covers the smallest and largest value of each type, the initial values of maxima
// and minima.
func TestLiteralsOfAllIntegersArePTX(t *testing.T) {
	card(t, gpusim.Backend{})
	text := "TILTH_KERNEL(k, 32)(GLOBAL int64_t *restrict y) {\n  GLOBAL_ARRAY(y, 99);\n"
	for k, d := range []array.DType{array.Int8, array.Int16, array.Int32, array.Int64, array.Uint8, array.Uint16, array.Uint32, array.Uint64} {
		for n, v := range []int64{math.MinInt64, -1, math.MaxInt64} {
			text += fmt.Sprintf("  STORE(y, %d, (int64_t)(%s));\n", 3*k+n, cprint.IntLiteral(v, d))
		}
	}
	made, err := ptx(t, "sm_80", text+"}\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"-9223372036854775808", "9223372036854775807"} {
		if !strings.Contains(made, want) {
			t.Errorf("there is no %s in\n%s", want, made)
		}
	}
}

// TestLaunchGivesMuchSharedMemory checks that a kernel beyond the static limit has all its arrays in dynamic shared
// memory, one after another.
func TestLaunchGivesMuchSharedMemory(t *testing.T) {
	b := gpusim.Backend{}
	on := card(t, b)
	s := b.Space(kerneltest.Product(t, 512, 512, 512), on, schedule.Strict)
	rng, found := rand.New(rand.NewPCG(1, 1)), 0
	for range 400 {
		p, ok := s.Random(rng)
		if !ok {
			continue
		}
		point := printPoint(t, s, p, on)
		for _, k := range point.kernels {
			if k.SharedBytes == 0 {
				continue
			}
			found++
			text, err := ptx(t, "sm_80", point.helpers+k.Text)
			if err != nil {
				t.Fatal(err)
			}
			if k.SharedBytes <= 48<<10 || strings.Contains(k.Text, "SHARED_ARRAY") || !strings.Contains(text, ".extern .shared .align 1024 .b8 tilth_shared[]") {
				t.Errorf("%s: %d bytes\n%s\n%s", s.Format(p), k.SharedBytes, k.Text, text)
			}
		}
		if found == 3 {
			return
		}
	}
	t.Errorf("%d of the points take more shared memory than a kernel may declare", found)
}
