package aot

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/userkernel"
)

// single returns a model of one call, of dense.
func single(t *testing.T) *program.Program {
	t.Helper()
	value := func(name string, shape ...int64) program.Value {
		return program.Value{Name: name, DType: array.Float32, Shape: shape, Alias: -1}
	}
	p := &program.Program{
		Name: "single", Values: []program.Value{value("x", rows, width), value("w", width, width), value("y", rows, width)}, Inputs: []int{0}, Outputs: []int{2},
		Tasks: []program.Task{{Workload: dense(t), Name: "dense", Count: 1}}, Calls: []program.Call{{Name: "layer", Task: 0, Args: []int{0, 1, 2}}},
	}
	p.Values[1].Data = sample(1, width, width)
	return p
}

// ofCard returns a GPU kernel for dense; libraries is the field of its description that names libraries, if any.
func ofCard(t *testing.T, libraries, body string) *userkernel.Kernel {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(dense(t).Text(), "\n"), "\n")
	k, err := userkernel.Parse(fmt.Appendf(nil, `{"name":"of-card","arch":"cuda","numerics":"strict","workloads":[{"text":["%s"]}],%s"source":%q}`,
		strings.Join(lines, `","`), libraries, "int kernel(const struct tilth_card *card, void *const *args, void *workspace) {\n"+body+"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestKernelsForACardKnowWhatTheyKept checks that a reopened context has another generation, and that two models on
// a GPU and two GPUs are distinguished. The kernel writes the GPU and the generation of its first two calls, the
// executed and the recorded one, into the memory of the fake GPU, which is the host's.
func TestKernelsForACardKnowWhatTheyKept(t *testing.T) {
	p := single(t)
	o, driver := deviceOptions(t, p)
	choose(t, &o, ofCard(t, "", fmt.Sprintf("  float *out = args[2];\n  for (int k = 0; k < %d; k++) out[k] += 100 * card->number + card->generation;\n  return 0;\n", rows*width)))
	dir := compiledForDevice(t, p, o)
	if err := driver.Tell("devices", 2); err != nil {
		t.Fatal(err)
	}
	buildDeviceUser(t, options(t, residual(t)), dir, "cards")
	out, err := run(t, append([]string{filepath.Join(dir, "cards")}, deviceCommand(dir, driver)[1:]...), sample(5, rows, width).Data)
	if err != nil {
		t.Fatal(err)
	}
	var got []float64
	for n := len(out) / 5; len(out) > 0; out = out[n:] {
		y := outputsOf(p, out[:n])["y"]
		if y.Float(0) != y.Float(y.Len()-1) {
			t.Errorf("the outputs begin with %g and end with %g", y.Float(0), y.Float(y.Len()-1))
		}
		got = append(got, y.Float(0))
	}
	if want := []float64{202, 2, 2, 4, 202}; !slices.Equal(got, want) {
		t.Errorf("the outputs are %v, not %v", got, want)
	}
}

// TestPackageForACardChecksTheLibrariesOfItsKernels uses a CPU library in place of one of the GPU's.
func TestPackageForACardChecksTheLibrariesOfItsKernels(t *testing.T) {
	p := single(t)
	o, _ := deviceOptions(t, p)
	choose(t, &o, ofCard(t, `"libraries":[{"soname":"libz.so.1","version_function":"zlibVersion","version":"0.0.1"}],`, "  extern const char *zlibVersion(void);\n  return !zlibVersion();\n"))
	manifest, err := Compile(t.Context(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	if want := []Library{{"libz.so.1", "0.0.1"}}; !reflect.DeepEqual(manifest.Libraries(), want) {
		t.Errorf("the manifest names %v, not %v", manifest.Libraries(), want)
	}
	text := complaint(t, userCommand(unpacked(t, o)))
	if !strings.Contains(text, "libz.so.1 has version ") || !strings.Contains(text, " here, and the kernel was measured with 0.0.1: ") {
		t.Errorf("it says %q", text)
	}
}

// TestModelSaysWhatItsKernelForACardReturns checks the error of the first call and of the recorded one.
func TestModelSaysWhatItsKernelForACardReturns(t *testing.T) {
	for call := range 2 {
		p := single(t)
		o, _ := deviceOptions(t, p)
		choose(t, &o, ofCard(t, "", fmt.Sprintf("  static int calls;\n  return calls++ == %d ? 15 : 0;\n", call)))
		if _, err := Compile(t.Context(), p, o); err != nil {
			t.Fatal(err)
		}
		if text := strings.TrimSpace(complaint(t, userCommand(unpacked(t, o)))); !strings.HasSuffix(text, "own kernel of-card returns 15") {
			t.Errorf("call %d: it says %q", call, text)
		}
	}
}
