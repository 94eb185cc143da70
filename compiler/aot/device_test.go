package aot

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	cpuruntime "github.com/tilth-dev/tilth/compiler/backend/cpu/cruntime"
	"github.com/tilth-dev/tilth/compiler/backend/cuda"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
	"github.com/tilth-dev/tilth/lab/testkit/fakedriver"
)

// players maps programs by name to drivers that play their default schedules; each test gets a copy.
var players = map[string]*fakedriver.Driver{}

// deviceOptions returns options for a chip, with default schedules, and a driver that plays the package's code.
func deviceOptions(t testing.TB, p *program.Program) (Options, *fakedriver.Driver) {
	t.Helper()
	o := options(t, residual(t))
	var err error
	if o.Target, err = (cuda.Backend{}).Target("sm_90a", 1); err != nil {
		t.Fatal(err)
	}
	o.Objects = openObjects(t, filepath.Join(scratch, "objects")) // keys lack the code of the fake assembler
	o.Choices = nil
	for _, task := range p.Tasks {
		space := cuda.Backend{}.Space(task.Workload, o.Target, schedule.Default)
		s, err := space.Apply(space.Default())
		if err != nil {
			t.Fatal(err)
		}
		o.Choices = append(o.Choices, Choice{Trace: s.Trace(), Origin: "default"})
	}
	player := players[p.Name]
	if player == nil {
		player = played(t, &compilation{program: p, options: o, backend: cuda.Backend{}})
		players[p.Name] = player
	}
	driver, err := player.Copy(t.TempDir())
	if err == nil {
		err = driver.PlayAlso(player)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(cuda.DriverVariable, driver.Library())
	return o, driver
}

// played returns a driver in a folder of scratch that plays the kernels of a compilation.
func played(t testing.TB, c *compilation) *fakedriver.Driver {
	t.Helper()
	dir := filepath.Join(scratch, "driver of "+c.program.Name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	driver, err := fakedriver.Make(t.Context(), c.options.Toolchain, c.options.Target, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.lower(); err != nil {
		t.Fatal(err)
	}
	for _, e := range c.embedded {
		if err := driver.Play(t.Context(), e.Build); err != nil {
			t.Fatal(err)
		}
	}
	return driver
}

// onDevice returns a package for a device, unpacked, with the C programs that run it.
func onDevice(t *testing.T, p *program.Program) (dir string, driver *fakedriver.Driver) {
	t.Helper()
	o, driver := deviceOptions(t, p)
	return compiledForDevice(t, p, o), driver
}

// compiledForDevice compiles a program, and unpacks the package.
func compiledForDevice(t *testing.T, p *program.Program, o Options) (dir string) {
	t.Helper()
	manifest, err := Compile(t.Context(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	if manifest.Target.GPU == nil || manifest.Target.GPU.Arch != "sm_90a" {
		t.Errorf("the manifest's target is %s", manifest.Target.Encode())
	}
	dir = unpacked(t, o)
	buildDeviceUser(t, o, dir, "device")
	return dir
}

// userCommand runs a package with host memory, deviceCommand with the device's.
func userCommand(dir string) []string {
	return []string{filepath.Join(dir, "user"), filepath.Join(dir, objectName), filepath.Join(dir, weightsName), "0"}
}

func deviceCommand(dir string, driver *fakedriver.Driver) []string {
	return []string{filepath.Join(dir, "device"), driver.Library(), filepath.Join(dir, objectName), filepath.Join(dir, weightsName)}
}

// TestPackagesRunOnADevice: weights, values and calls are on the GPU, with the same C interface.
func TestPackagesRunOnADevice(t *testing.T) {
	p := residual(t)
	dir, driver := onDevice(t, p)
	input := sample(5, rows, width)
	want, err := evaluate.Program(p, map[string]*array.Array{inputName(p): input})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, ran(t, p, userCommand(dir), input.Data), want)
	compare(t, ran(t, p, deviceCommand(dir, driver), input.Data), want)
}

// TestPackageRunsOnSeveralCardsOfAProcess: each GPU has its own code and memory, and the thread keeps its current
// GPU. A GPU is released with its last open model, and may be used again.
func TestPackageRunsOnSeveralCardsOfAProcess(t *testing.T) {
	p := residual(t)
	dir, driver := onDevice(t, p)
	if err := driver.Tell("devices", 2); err != nil {
		t.Fatal(err)
	}
	input := sample(5, rows, width)
	want, err := evaluate.Program(p, map[string]*array.Array{inputName(p): input})
	if err != nil {
		t.Fatal(err)
	}
	buildDeviceUser(t, options(t, p), dir, "cards")
	out, err := run(t, append([]string{filepath.Join(dir, "cards")}, deviceCommand(dir, driver)[1:]...), input.Data)
	if err != nil {
		t.Fatal(err)
	}
	for n := len(out) / 5; len(out) > 0; out = out[n:] { // of the second card, three times of the first, of the second again
		compare(t, outputsOf(p, out[:n]), want)
	}
}

// halves returns a model of one call: a product of matrices of bfloat16.
func halves(t testing.TB) *program.Program {
	t.Helper()
	const n = 64
	x, w := expr.NewInput("x", array.BFloat16, n, n), expr.NewConstant("w", array.BFloat16, n, n)
	sum := expr.ReduceOver("sum", expr.Sum, []int64{n, n}, []int64{n}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(&expr.Cast{Type: array.Float32, A: x.At(i[0], r[0])}, &expr.Cast{Type: array.Float32, A: w.At(r[0], i[1])})
	})
	return &program.Program{
		Name: "halves",
		Values: []program.Value{
			{Name: "x", DType: array.BFloat16, Shape: []int64{n, n}, Alias: -1},
			{Name: "w", DType: array.BFloat16, Shape: []int64{n, n}, Alias: -1, Data: rounded(sample(1, n, n))},
			{Name: "y", DType: array.Float32, Shape: []int64{n, n}, Alias: -1},
		},
		Inputs: []int{0}, Outputs: []int{2},
		Tasks: []program.Task{{Workload: workload(t, sum), Name: "product", Count: 1}},
		Calls: []program.Call{{Name: "layer", Task: 0, Args: []int{0, 1, 2}}},
	}
}

// rounded returns the same numbers in bfloat16.
func rounded(a *array.Array) *array.Array {
	r := array.New(array.BFloat16, a.Shape...)
	for i := range a.Len() {
		r.SetFloat(i, a.Float(i))
	}
	return r
}

// TestPackagesMakeTensorMaps checks the addresses in tensor maps of values and weights.
func TestPackagesMakeTensorMaps(t *testing.T) {
	p := halves(t)
	o, driver := deviceOptions(t, p)
	if !strings.Contains(string(o.Choices[0].Trace), "\nbulk ") {
		t.Fatalf("the default schedule copies no boxes:\n%s", o.Choices[0].Trace)
	}
	dir := compiledForDevice(t, p, o)
	input := rounded(sample(5, 64, 64))
	want, err := evaluate.Program(p, map[string]*array.Array{inputName(p): input})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, ran(t, p, userCommand(dir), input.Data), want)
	compare(t, ran(t, p, deviceCommand(dir, driver), input.Data), want)
	refusedByLaterChips(t, dir, driver)
}

// refusedByLaterChips: warpgroup products are specific to one chip. The message includes the driver compiler's
// output.
func refusedByLaterChips(t *testing.T, dir string, driver *fakedriver.Driver) {
	t.Helper()
	if err := driver.Tell("capability", 120); err != nil {
		t.Fatal(err)
	}
	want := "loading kernels: no kernel image is available for execution on the device; they are for sm_90a, that chip alone, and this GPU is sm_120: " +
		"compile the model for it. this code is for other chips\n"
	if text := complaint(t, userCommand(dir)); text != want {
		t.Errorf("on another chip it says %q, want %q", text, want)
	}
}

// TestPackagesHaveCubins checks for cubins for the target chip, and PTX for later ones, which is the fallback if
// the driver rejects the cubin. An older chip gets an error.
func TestPackagesHaveCubins(t *testing.T) {
	assembler := filepath.Join(t.TempDir(), "ptxas")
	if err := fakedriver.WriteAssembler(assembler); err != nil {
		t.Fatal(err)
	}
	t.Setenv(toolchain.AssemblerVariable, assembler)
	p := residual(t)
	dir, driver := onDevice(t, p)
	code, err := os.ReadFile(filepath.Join(dir, objectName))
	if err != nil {
		t.Fatal(err)
	}
	if n, want := bytes.Count(code, []byte("\x7fELF//")), bytes.Count(code, []byte("\n.version ")); n == 0 || 2*n != want {
		t.Fatalf("the package has %d cubins and %d versions of PTX", n, want)
	}
	input := sample(5, rows, width)
	want, err := evaluate.Program(p, map[string]*array.Array{inputName(p): input})
	if err != nil {
		t.Fatal(err)
	}
	tell := func(what string, number int) {
		t.Helper()
		if err := driver.Tell(what, number); err != nil {
			t.Fatal(err)
		}
	}
	for refuse := range 2 {
		tell("refuse", refuse)
		compare(t, ran(t, p, userCommand(dir), input.Data), want)
	}
	tell("refuse", 0)
	tell("capability", 120)
	compare(t, ran(t, p, userCommand(dir), input.Data), want)
	tell("capability", 86)
	if text := complaint(t, userCommand(dir)); !strings.Contains(text, "they are for sm_90, that chip and later ones, and this GPU is sm_86: compile") {
		t.Errorf("on an older chip it says %q", text)
	}
}

// TestModelThatFailsOnItsDeviceSaysSo checks for an error in place of outputs.
func TestModelThatFailsOnItsDeviceSaysSo(t *testing.T) {
	dir, driver := onDevice(t, residual(t))
	if err := driver.Tell("illegal", 6); err != nil { // the second call of the first run that a user asks for
		t.Fatal(err)
	}
	if _, err := run(t, deviceCommand(dir, driver), sample(5, rows, width).Data); err == nil {
		t.Error("it goes on")
	}
}

// buildDeviceUser compiles a C program of testdata that knows the driver.
func buildDeviceUser(t *testing.T, o Options, dir, name string) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name + ".c")
	if err != nil {
		t.Fatal(err)
	}
	buildOnce(t, o, toolchain.Build{
		Headers: append(cuda.DriverSources(), cpuruntime.Interface()),
		Sources: []toolchain.File{{Name: name + ".c", Text: "#include \"driver.c\"\n" + string(text)}},
	}, filepath.Join(dir, name))
}

// TestPackagesSayWhatIsWrongWithTheDevice checks for single-line errors.
func TestPackagesSayWhatIsWrongWithTheDevice(t *testing.T) {
	dir, driver := onDevice(t, residual(t))
	for _, c := range []struct {
		tell   string
		number int
		want   string
	}{
		{"devices", 0, "starting the driver: no CUDA-capable device is detected"},
		{"memory", 0, "allocating memory for values on the GPU: out of memory"},
		{"illegal", 4, "an illegal memory access was encountered"},
	} {
		if err := driver.Tell(c.tell, c.number); err != nil {
			t.Fatal(err)
		}
		text := complaint(t, userCommand(dir))
		if !strings.Contains(text, c.want) {
			t.Errorf("%s %d: it says %q, want %q", c.tell, c.number, text, c.want)
		}
		if err := driver.Forget(c.tell); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("TILTH_DEVICE", "1")
	if text := complaint(t, userCommand(dir)); !strings.Contains(text, "choosing a GPU: ") {
		t.Errorf("for the second of one card it says %q", text)
	}
	t.Setenv(cuda.DriverVariable, filepath.Join(t.TempDir(), "none.so"))
	if text := complaint(t, userCommand(dir)); !strings.Contains(text, "no driver of NVIDIA's GPUs") {
		t.Errorf("without a driver it says %q", text)
	}
}

// complaint returns the error output of a command that fails.
func complaint(t *testing.T, command []string) string {
	t.Helper()
	var stderr strings.Builder
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Stderr = &stderr
	if err := cmd.Run(); err == nil {
		t.Errorf("%v succeeds", command)
	}
	return stderr.String()
}
