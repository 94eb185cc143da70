package aot

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/compiler/userkernel"
)

// rectified computes dense, and calls zlib.
const rectified = `extern const char *zlibVersion(void);
void kernel(const struct tilth_runtime *rt, void *const *args, void *workspace) {
  const float *x = args[0], *w = args[1];
  float *out = args[2];
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < WIDTH; j++) {
      float sum = 0;
      for (int k = 0; k < WIDTH; k++) sum += x[i * WIDTH + k] * w[k * WIDTH + j];
      out[i * WIDTH + j] = sum > 0 && zlibVersion() ? sum : 0;
    }
}
`

// calling returns a kernel for dense that calls zlib.
func calling(t *testing.T, o Options) *userkernel.Kernel {
	t.Helper()
	folder, lines := t.TempDir(), strings.Split(strings.TrimSuffix(dense(t).Text(), "\n"), "\n")
	description := fmt.Sprintf(`{"name":"calls-zlib","arch":%q,"workloads":[{"text":["%s"],"define":{"ROWS":%d,"WIDTH":%d}}],`+
		`"libraries":[{"soname":"libz.so.1","version_function":"zlibVersion"}]}`, o.Target.Arch(), strings.Join(lines, `","`), rows, width)
	for name, text := range map[string]string{userkernel.DescriptionFile: description, userkernel.SourceFile: rectified} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	k, err := userkernel.Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// choose has a kernel compute the first task of options.
func choose(t *testing.T, o *Options, k *userkernel.Kernel) {
	t.Helper()
	c, err := k.At(dense(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := schedule.New(dense(t))
	if err := s.UseOwn(c); err != nil {
		t.Fatal(err)
	}
	o.Choices[0].Trace, o.Own = s.Trace(), func(*userkernel.Kernel) bool { return true }
}

// TestPackageChecksTheLibrariesOfItsKernels: the measured versions run; another version is an error.
func TestPackageChecksTheLibrariesOfItsKernels(t *testing.T) {
	p := residual(t)
	o := options(t, p)
	open := calling(t, o)
	pinned, err := toolchain.PinLibraries(t.Context(), o.Toolchain, o.Target, open)
	if err != nil {
		t.Fatal(err)
	}
	inputs := map[string]*array.Array{"x \"quoted\"": sample(5, rows, width)}
	_, plain := compiled(t)
	want, err := opened(t, plain).Run(inputs)
	if err != nil {
		t.Fatal(err)
	}
	choose(t, &o, pinned)
	manifest, err := Compile(t.Context(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	if list := []Library{{"libz.so.1", pinned.Libraries[0].Version}}; !reflect.DeepEqual(manifest.Libraries(), list) {
		t.Errorf("the manifest names %v, not %v", manifest.Libraries(), list)
	}
	got, err := opened(t, o.Output).Run(inputs)
	if err != nil {
		t.Fatal(err)
	}
	for name := range want {
		for i := range want[name].Len() {
			if got, want := got[name].Float(i), want[name].Float(i); math.Abs(got-want) > 1e-5 {
				t.Fatalf("%s[%d] is %g, not %g", name, i, got, want)
			}
		}
	}
	other, err := open.Pin([]string{"0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	choose(t, &o, other)
	if _, err := Compile(t.Context(), p, o); err != nil {
		t.Fatal(err)
	}
	_, err = Load(o.Output)
	if err == nil || !regexp.MustCompile(`libz\.so\.1 has version [0-9.]+ here, and the kernel was measured with 0\.0\.1: tune and compile it again on this machine`).MatchString(err.Error()) {
		t.Errorf("a package of another version: %v", err)
	}
}

func TestLibraryThatIsMissingIsNamedWithTheRemedy(t *testing.T) {
	m := &Manifest{Tasks: []TaskInfo{{}, {Kernel: &OwnKernel{Libraries: []Library{{"libopenblas.so.0", "0.3.21"}}}}}}
	loader := errors.New("libopenblas.so.0: cannot open shared object file: No such file or directory")
	if err := m.unloadable(loader); !errors.Is(err, loader) || !strings.Contains(err.Error(), "it calls libopenblas.so.0 0.3.21, which cannot be loaded: install") {
		t.Error(err)
	}
	if other := errors.New("something else"); !errors.Is(m.unloadable(other), other) || m.unloadable(other).Error() != other.Error() {
		t.Error(m.unloadable(other))
	}
}
