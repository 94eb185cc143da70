package codegen_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/codegen"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/dialect"
	"github.com/tilth-dev/tilth/compiler/backend/gpusim"
	"github.com/tilth-dev/tilth/compiler/backend/kerneltest"
	"github.com/tilth-dev/tilth/compiler/ctext"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/expr/exprtest"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/testkit/sketch"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { kerneltest.Main(m, 2) }

// batchSize is how many workloads' kernels are compiled together.
const batchSize = 10

// ptx compiles kernels for an NVIDIA GPU.
func ptx(t testing.TB, arch, text string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	source, object := filepath.Join(dir, "kernels.c"), filepath.Join(dir, "kernels.ptx")
	if err := os.WriteFile(source, []byte(dialect.NVPTX()+text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "clang-19", append(dialect.NVPTXFlags(arch), "-w", source, "-o", object)...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	made, err := os.ReadFile(object)
	if err != nil {
		t.Fatal(err)
	}
	return dialect.BoundThreads(string(made))
}

// card is the GPU that kernels are printed for, where clang makes PTX, as Debian's does.
func card(t *testing.T, b gpusim.Backend) *target.Target {
	t.Helper()
	if targets, err := exec.CommandContext(t.Context(), "clang-19", "--print-targets").Output(); err != nil || !strings.Contains(string(targets), "nvptx64") {
		t.Skip("there is no clang-19 with the target nvptx64")
	}
	on, err := b.Target(b.Targets()[0], 1)
	if err != nil {
		t.Fatal(err)
	}
	return on
}

// entries counts the kernels of PTX.
var entries = regexp.MustCompile(`(?m)^\.visible \.entry|^\.entry`)

// chips are architectures that have all instructions of kernels.
func chips(text string) []string {
	if strings.Contains(text, "WGMMA(") {
		return []string{"sm_90a"}
	}
	return []string{"sm_80", "sm_90"}
}

// TestEveryPointIsPTX: the text that is right on the simulated GPU is one that clang makes PTX of, with an entry for
// each launch. Where there is NVIDIA's assembler, it takes that, and says how many kernels spill.
func TestEveryPointIsPTX(t *testing.T) {
	b := gpusim.Backend{}
	on := card(t, b)
	tasks := sketch.NarrowTasks(t, b.Storage(on, schedule.Fast))
	for name, draw := range map[string]func(*rapid.T) *expr.Workload{
		"any": kerneltest.DrawWorkload, "product": kerneltest.DrawProduct, "convolution": kerneltest.DrawConv,
		"integers": kerneltest.DrawIntegerProduct, "rows": kerneltest.DrawRows, "matrices": kerneltest.DrawMatrices,
		"attention": kerneltest.DrawAttention, "warpgroups": kerneltest.DrawWarpgroups, "sums": kerneltest.DrawSums,
		"windows": kerneltest.DrawWindows, "groups": kerneltest.DrawGroups,
		"narrow": func(t *rapid.T) *expr.Workload { return rapid.SampledFrom(tasks).Draw(t, "task") },
	} {
		t.Run(name, func(t *testing.T) {
			var spilled []usage
			kernels := 0
			rapid.Check(t, func(rt *rapid.T) {
				var helpers ctext.Declarations
				text, want := "", 0
				for n := range batchSize {
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
					f, err := codegen.Lower(made, on.GPU, nil)
					if err != nil {
						rt.Fatalf("%v\n%s%s", err, w.Text(), made.Trace())
					}
					for _, k := range codegen.Kernels(fmt.Sprintf("k%d", n), f, &helpers, dialect.Text) {
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
			if kernels > 0 {
				t.Logf("%d of %d kernels spill: %v", len(spilled), kernels, spilled)
			}
		})
	}
}

// TestATileLiesInRegisters: what a thread keeps of a product is in no memory of its own, operands come through shared
// memory, ahead where the schedule says so, and multiply-adds are fused.
func TestATileLiesInRegisters(t *testing.T) {
	b := gpusim.Backend{}
	on := card(t, b)
	whole := b.Space(exprtest.Product(t, 512, 512, 512), on, schedule.Strict)
	for stages, fetch := range map[int64][]string{1: {"st.shared"}, 3: {"cp.async.cg.shared.global", "cp.async.commit_group", "cp.async.wait_group 1"}} {
		s, err := whole.Restrict(map[string][]int64{"stages": {stages}, "parts": {1}, "cut": {0}})
		if err != nil {
			t.Fatal(err)
		}
		made, err := s.Apply(s.Default())
		if err != nil {
			t.Fatal(err)
		}
		f, err := codegen.Lower(made, on.GPU, nil)
		if err != nil {
			t.Fatal(err)
		}
		var helpers ctext.Declarations
		kernels := codegen.Kernels("product", f, &helpers, dialect.Text)
		if len(kernels) != 1 {
			t.Fatalf("%d launches", len(kernels))
		}
		text, err := ptx(t, "sm_80", helpers.Text()+kernels[0].Text)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text, ".local") {
			t.Errorf("%s keeps results in memory:\n%s", s.Format(s.Default()), kernels[0].Text)
		}
		spillsNothing(t, "sm_80", text)
		for _, want := range append(fetch, "fma.rn.f32", "ld.shared", "bar.sync", fmt.Sprintf(".maxntid %d, 1, 1", kernels[0].Threads)) {
			if !strings.Contains(text, want) {
				t.Errorf("%s: there is no %s in\n%s", s.Format(s.Default()), want, text)
			}
		}
	}
}

// TestMatricesAreMultipliedByInstructions: in each format, with operands that come ahead in 16 bytes at a time, and
// nothing of a thread's in memory.
func TestMatricesAreMultipliedByInstructions(t *testing.T) {
	b := gpusim.Backend{}
	on := card(t, b)
	float := array.Float32
	for _, c := range []struct {
		operands    array.DType
		algorithm   string
		instruction string
	}{
		{float, "compensated TF32", "m16n8k8.row.col.f32.tf32.tf32.f32"}, {float, "TF32", "m16n8k8.row.col.f32.tf32.tf32.f32"},
		{float, "BF16", "m16n8k16.row.col.f32.bf16.bf16.f32"}, {array.BFloat16, "BF16", "m16n8k16.row.col.f32.bf16.bf16.f32"},
		{array.Float16, "F16", "m16n8k16.row.col.f32.f16.f16.f32"}, {array.Int8, "I8", "m16n8k32.row.col.s32.s8.s8.s32"},
		{array.Uint8, "I8", "m16n8k32.row.col.s32.u8.u8.s32"}, {array.BFloat16, "warpgroup BF16", "k16.f32.bf16.bf16"},
		{array.Float16, "warpgroup F16", "k16.f32.f16.f16"}, {float, "warpgroup TF32", "k8.f32.tf32.tf32"},
	} {
		s := b.Space(exprtest.ProductOf(t, c.operands, 512, 512, 512), on, schedule.Fast)
		for _, a := range s.Algorithms() {
			if a.Name == c.algorithm {
				s = s.Of(a)
			}
		}
		knobs := map[string][]int64{"stages": {3}}
		if strings.HasPrefix(c.algorithm, "warpgroup") {
			knobs = map[string][]int64{"stages": {4}}
		}
		s, err := s.Restrict(knobs)
		if err != nil {
			t.Fatal(err)
		}
		made, err := s.Apply(s.Default())
		if err != nil {
			t.Fatal(err)
		}
		f, err := codegen.Lower(made, on.GPU, nil)
		if err != nil {
			t.Fatal(err)
		}
		var helpers ctext.Declarations
		kernels := codegen.Kernels("product", f, &helpers, dialect.Text)
		arch := chips(kernels[0].Text)[0]
		text, err := ptx(t, arch, helpers.Text()+kernels[0].Text)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text, ".local") {
			t.Errorf("%s keeps results in memory:\n%s", s.Format(s.Default()), kernels[0].Text)
		}
		spillsNothing(t, arch, text)
		for _, want := range []string{c.instruction, "cp.async.wait_group 1"} {
			if !strings.Contains(text, want) {
				t.Errorf("%v, %s: there is no %s in\n%s", c.operands, s.Format(s.Default()), want, kernels[0].Text)
			}
		}
	}
}

// TestMatricesNeedNotBeWhole: tiles go beyond the ends of rows and of columns, where they have zeros.
func TestMatricesNeedNotBeWhole(t *testing.T) {
	b := gpusim.Backend{}
	on := card(t, b)
	s := b.Space(exprtest.Product(t, 197, 512, 500), on, schedule.Fast)
	for _, a := range s.Algorithms() {
		if a.Name == "BF16" {
			s = s.Of(a)
		}
	}
	made, err := s.Apply(s.Default())
	if err != nil {
		t.Fatal(err)
	}
	f, err := codegen.Lower(made, on.GPU, nil)
	if err != nil {
		t.Fatal(err)
	}
	var helpers ctext.Declarations
	text := codegen.Kernels("product", f, &helpers, dialect.Text)[0].Text
	made80, err := ptx(t, "sm_80", helpers.Text()+text)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(made80, "mma.sync") || strings.Contains(made80, ".local") || strings.Contains(made80, "fma.rn.f32") {
		t.Errorf("%s has plain arithmetic, or results in memory:\n%s", s.Format(s.Default()), text)
	}
}

// TestPositionsAreJoined: of images that are 14 wide, tiles of 64 positions go on across the ends of rows, and
// instructions multiply all of them.
func TestPositionsAreJoined(t *testing.T) {
	b := gpusim.Backend{}
	on := card(t, b)
	w, err := expr.Parse(`tilth-workload 1
input t0 f32[14,14,64]
constant t1 f32[3,3,64,96]
map t2 f32[16,16,64] = (select (and (and (le 1 i0) (lt i0 15)) (and (le 1 i1) (lt i1 15))) [t0 (sub i0 1) (sub i1 1) i2] 0x0p+00:f32)
sum t3 f32[14,14,96] over 3,3,64 = (mul [t2 (add i0 r0) (add i1 r1) r2] [t1 r0 r1 r2 i2])
output t3
`)
	if err != nil {
		t.Fatal(err)
	}
	s := b.Space(w, on, schedule.Fast)
	for _, a := range s.Algorithms() {
		if a.Name == "BF16" {
			s = s.Of(a)
		}
	}
	s, err = s.Restrict(map[string][]int64{"joint": {1}, "tall": {2}, "rows": {2}, "parts": {1}})
	if err != nil {
		t.Fatal(err)
	}
	made, err := s.Apply(s.Default())
	if err != nil {
		t.Fatal(err)
	}
	f, err := codegen.Lower(made, on.GPU, nil)
	if err != nil {
		t.Fatal(err)
	}
	var helpers ctext.Declarations
	kernel := codegen.Kernels("conv", f, &helpers, dialect.Text)[0]
	text, err := ptx(t, "sm_80", helpers.Text()+kernel.Text)
	if err != nil {
		t.Fatal(err)
	}
	if kernel.Blocks%4 != 0 || !strings.Contains(text, "mma.sync") || strings.Contains(text, ".local") || strings.Contains(text, "fma.rn.f32") {
		t.Errorf("%d blocks, by %s:\n%s", kernel.Blocks, s.Format(s.Default()), kernel.Text)
	}
}

// TestPatchesLieInRegisters: of a depthwise convolution each thread reads what its results need once, and neighbours
// read neighbouring channels.
func TestPatchesLieInRegisters(t *testing.T) {
	b := gpusim.Backend{}
	on := card(t, b)
	w, err := expr.Parse(`tilth-workload 1
input t0 f32[58,58,144]
constant t1 f32[3,3,144]
sum t2 f32[56,56,144] over 3,3 = (mul [t0 (add i0 r0) (add i1 r1) i2] [t1 r0 r1 i2])
output t2
`)
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.Space(w, on, schedule.Strict).Restrict(map[string][]int64{"tall": {2}, "wide": {4}})
	if err != nil {
		t.Fatal(err)
	}
	made, err := s.Apply(s.Default())
	if err != nil {
		t.Fatal(err)
	}
	f, err := codegen.Lower(made, on.GPU, nil)
	if err != nil {
		t.Fatal(err)
	}
	var helpers ctext.Declarations
	text := codegen.Kernels("depthwise", f, &helpers, dialect.Text)[0].Text
	made80, err := ptx(t, "sm_80", helpers.Text()+text)
	if err != nil {
		t.Fatal(err)
	}
	// A patch of 4 by 6 elements, and 9 weights.
	if n := strings.Count(made80, "ld.global"); n != 24+9 || strings.Contains(made80, ".local") || strings.Contains(made80, "shared") {
		t.Errorf("a thread reads %d elements:\n%s", n, text)
	}
}

// TestRowsAreCombinedInRegisters: threads exchange their sums, and what a row's stages leave to the next ones is all
// that lies in shared memory.
func TestRowsAreCombinedInRegisters(t *testing.T) {
	b := gpusim.Backend{}
	on := card(t, b)
	w, err := expr.Parse(`tilth-workload 1
input t0 f32[512,256]
max t1 f32[512] over 256 = [t0 i0 r0]
map t2 f32[512,256] = (exp (sub [t0 i0 i1] [t1 i0]))
sum t3 f32[512] over 256 = [t2 i0 r0]
map t4 f32[512,256] = (div [t2 i0 i1] [t3 i0])
output t4
`)
	if err != nil {
		t.Fatal(err)
	}
	s := b.Space(w, on, schedule.Strict)
	made, err := s.Apply(s.Default())
	if err != nil {
		t.Fatal(err)
	}
	f, err := codegen.Lower(made, on.GPU, nil)
	if err != nil {
		t.Fatal(err)
	}
	var helpers ctext.Declarations
	text := codegen.Kernels("softmax", f, &helpers, dialect.Text)[0].Text
	made80, err := ptx(t, "sm_80", helpers.Text()+text)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(made80, "shfl.sync.bfly"); n < 6 || strings.Contains(made80, ".local") {
		t.Errorf("%s exchanges registers %d times:\n%s", s.Format(s.Default()), n, text)
	}
}

// TestFewResultsFillTheCard: where there are less tiles of results than multiprocessors, sums are divided into parts,
// which a second launch adds up.
func TestFewResultsFillTheCard(t *testing.T) {
	b := gpusim.Backend{}
	on := card(t, b)
	for _, m := range []int64{1, 8, 16} {
		for _, numerics := range []schedule.Numerics{schedule.Strict, schedule.Fast} {
			s := b.Space(exprtest.Product(t, m, 4096, 1024).Merge(), on, numerics)
			made, err := s.Apply(s.Default())
			if err != nil {
				t.Fatal(err)
			}
			f, err := codegen.Lower(made, on.GPU, nil)
			if err != nil {
				t.Fatal(err)
			}
			var helpers ctext.Declarations
			kernels := codegen.Kernels("product", f, &helpers, dialect.Text)
			if len(kernels) != 2 || kernels[0].Blocks < int64(on.GPU.Multiprocessors)/2 {
				t.Errorf("%d rows: %d launches, the first of %d blocks, by %s", m, len(kernels), kernels[0].Blocks, s.Format(s.Default()))
			}
		}
	}
}

// attention is of eight heads, whose scores are scaled and masked.
const attention = `tilth-workload 1
input t0 f32[8,256,64]
input t1 f32[8,%[1]d,64]
input t2 bool[256,%[1]d]
input t3 f32[8,%[1]d,64]
map t4 f32[8,64,%[1]d] = [t1 i0 i2 i1]
sum t5 f32[8,256,%[1]d] over 64 = (mul [t0 i0 i1 r0] [t4 i0 r0 i2])
map t6 f32[8,256,%[1]d] = (select [t2 i1 i2] (mul [t5 i0 i1 i2] 0x1p-03:f32) -0x1.fffffep+127:f32)
max t7 f32[8,256] over %[1]d = [t6 i0 i1 r0]
map t8 f32[8,256,%[1]d] = (exp (sub [t6 i0 i1 i2] [t7 i0 i1]))
map t9 f32[8,%[1]d,64] = [t3 i0 i1 i2]
sum t10 f32[8,256,64] over %[1]d = (mul [t8 i0 i1 r0] [t9 i0 r0 i2])
sum t11 f32[8,256] over %[1]d = [t8 i0 i1 r0]
map t12 f32[8,256] = (div 0x1p+00:f32 [t11 i0 i1])
map t13 f32[8,256,64] = (mul [t10 i0 i1 i2] [t12 i0 i1])
output t13
`

// TestAttentionIsOneLaunch, however many keys there are, which multiplies matrices by instructions and keeps scores in
// registers and shared memory. Keys that are no whole pieces leave it at that.
func TestAttentionIsOneLaunch(t *testing.T) {
	b := gpusim.Backend{}
	on := card(t, b)
	for _, keys := range []int{128, 197, 4096} {
		w, err := expr.Parse(fmt.Sprintf(attention, keys))
		if err != nil {
			t.Fatal(err)
		}
		s := b.Space(w, on, schedule.Default)
		made, err := s.Apply(s.Default())
		if err != nil {
			t.Fatal(err)
		}
		f, err := codegen.Lower(made, on.GPU, nil)
		if err != nil {
			t.Fatal(err)
		}
		var helpers ctext.Declarations
		kernels := codegen.Kernels("attention", f, &helpers, dialect.Text)
		if len(kernels) != 1 {
			t.Errorf("%d launches for %d keys, by %s", len(kernels), keys, s.Format(s.Default()))
		}
		text, err := ptx(t, "sm_80", helpers.Text()+kernels[0].Text)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"mma.sync", "shfl.sync.bfly"} {
			if strings.Contains(text, ".local") || !strings.Contains(text, want) {
				t.Errorf("%d keys, by %s: there is no %s, or results lie in memory:\n%s", keys, s.Format(s.Default()), want, kernels[0].Text)
			}
		}
	}
}

// TestLiteralsOfAllIntegersArePTX: the smallest and the largest of each type, which maxima and minima begin with.
func TestLiteralsOfAllIntegersArePTX(t *testing.T) {
	card(t, gpusim.Backend{})
	text := "TILTH_KERNEL(k, 32)(GLOBAL int64_t *restrict y) {\n  GLOBAL_ARRAY(y, 99);\n"
	for k, d := range []array.DType{array.Int8, array.Int16, array.Int32, array.Int64, array.Uint8, array.Uint16, array.Uint32, array.Uint64} {
		for n, v := range []int64{math.MinInt64, -1, math.MaxInt64} {
			text += fmt.Sprintf("  STORE(y, %d, (int64_t)(%s));\n", 3*k+n, ctext.IntLiteral(v, d))
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

// TestALaunchGivesMuchSharedMemory: a kernel that takes more than it may declare has all of its arrays in what the
// launch gives, one behind the other.
func TestALaunchGivesMuchSharedMemory(t *testing.T) {
	b := gpusim.Backend{}
	on := card(t, b)
	s := b.Space(exprtest.Product(t, 512, 512, 512), on, schedule.Strict)
	rng, found := rand.New(rand.NewPCG(1, 1)), 0
	for range 400 {
		p, ok := s.Random(rng)
		if !ok {
			continue
		}
		made, err := s.Apply(p)
		if err != nil {
			t.Fatal(err)
		}
		f, err := codegen.Lower(made, on.GPU, nil)
		if err != nil {
			t.Fatal(err)
		}
		var helpers ctext.Declarations
		for _, k := range codegen.Kernels("product", f, &helpers, dialect.Text) {
			if k.SharedBytes == 0 {
				continue
			}
			found++
			text, err := ptx(t, "sm_80", helpers.Text()+k.Text)
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
