package aot

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
)

// TestPackageIsCheckedBeforeItIsWritten: the package is complete when it is measured, and afterwards differs from
// an unchecked one only by the results. A rejected package leaves no copy.
func TestPackageIsCheckedBeforeItIsWritten(t *testing.T) {
	p := residual(t)
	o := options(t, p)
	if _, err := Compile(t.Context(), p, o); err != nil {
		t.Fatal(err)
	}
	plain := contents(t, o.Output)
	scratch := t.TempDir()
	t.Setenv("TMPDIR", scratch)
	o.Output = t.TempDir() + "/checked.tar"
	o.Check = func(m *Model) (*Accuracy, error) {
		if _, err := os.Stat(o.Output); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the package is there already: %v", err)
		}
		_, err := m.Run(map[string]*array.Array{inputName(p): sample(5, rows, width)})
		return &Accuracy{Numerics: "fast", RelativeErrors: map[string]float64{"y": 0.5}}, err
	}
	manifest, err := Compile(t.Context(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	if output, worst := manifest.Accuracy.Worst(); output != "y" || worst != 0.5 {
		t.Errorf("the manifest says that %s is off by %g", output, worst)
	}
	checked := contents(t, o.Output)
	if bytes.Equal(checked[manifestName], plain[manifestName]) {
		t.Error("the manifest does not say what was measured")
	}
	delete(checked, manifestName)
	delete(plain, manifestName)
	if !maps.EqualFunc(checked, plain, bytes.Equal) {
		t.Error("the members are others than those of a package that nobody checks")
	}
	m, err := Load(o.Output)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	refused := errors.New("too large")
	o.Output, o.Check = t.TempDir()+"/refused.tar", func(*Model) (*Accuracy, error) { return nil, refused }
	if _, err := Compile(t.Context(), p, o); !errors.Is(err, refused) {
		t.Errorf("the error is %v", err)
	}
	if _, err := os.Stat(o.Output); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was refused is there: %v", err)
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
		t.Errorf("copies stay: %v, %v", left, err)
	}
}
