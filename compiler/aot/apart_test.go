package aot

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
)

// TestPackagesDoNotDependOnTheCompilersUsed: with Apart, equal schedules give equal packages, with or without cached
// objects and for any number of compilers.
func TestPackagesDoNotDependOnTheCompilersUsed(t *testing.T) {
	m := modeltest.New().Input("x0", 4, 8)
	for k := range 6 {
		m = m.Constant(fmt.Sprint("w", k), int64(8+k), int64(9+k)).Node(fmt.Sprintf("x%d = MatMul x%d w%d", k+1, k, k))
	}
	p := modeltest.Import(t, m.Output("x6"))
	tc, machine := toolchaintest.Native(t, 0)
	o := Options{Target: machine, Toolchain: tc, Output: filepath.Join(t.TempDir(), "model.tar")}
	for _, task := range p.Tasks {
		o.Choices = append(o.Choices, Choice{Trace: schedule.New(task.Workload).Trace(), Origin: "default"})
	}
	objects := openObjects(t, filepath.Join(t.TempDir(), "objects"))
	var first []byte
	for _, how := range []struct {
		kept     bool
		parallel int
	}{{true, 1}, {false, 1}, {false, 2}} {
		if o.Objects, o.Apart, o.Parallel = nil, true, how.parallel; how.kept {
			o.Objects = objects
		}
		if _, err := Compile(t.Context(), p, o); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(o.Output)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = data
		}
		if !bytes.Equal(data, first) {
			t.Errorf("kernels kept %v, %d compilers: the package differs from the first one", how.kept, how.parallel)
		}
	}
}
