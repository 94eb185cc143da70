package staticsite_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/lab/chaos/powercut"
	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/staticsite"
)

// processEnv makes this binary act as a program that writes an export.
const processEnv = "TILTH_TEST_STATIC"

func TestMain(m *testing.M) {
	dir := os.Getenv(processEnv)
	if dir == "" {
		os.Exit(m.Run())
	}
	if _, err := staticsite.Write(dir, workloads("conv", "pool")); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// workloads returns a source with one record of each workload.
func workloads(names ...string) staticsite.Source {
	slices.SortFunc(names, func(a, b string) int {
		return strings.Compare(records.Digest([]byte(a)), records.Digest([]byte(b)))
	})
	return staticsite.Source{
		List: func(visit func(*tilthv1.Record) error) error {
			for _, name := range names {
				if err := visit(storetest.Record("cpu", name, 1, 0.5)); err != nil {
					return err
				}
			}
			return nil
		},
		Best: func(records.Group, string) (*tilthv1.Record, error) { return nil, nil },
	}
}

// TestExportIsWholeAfterAPowerCut is a regression test: an index became durable before the names of its chunks.
func TestExportIsWholeAfterAPowerCut(t *testing.T) {
	for name, before := range map[string][]string{"the first": nil, "another": {"conv", "dense"}} {
		dir := t.TempDir()
		to := filepath.Join(dir, "data", "export")
		if err := os.Mkdir(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if before != nil {
			if _, err := staticsite.Write(to, workloads(slices.Clone(before)...)); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), processEnv+"="+to)
		trace, err := powercut.Run(cmd, dir)
		if err != nil {
			t.Fatal(err)
		}
		err = trace.Everywhere(1, storetest.QuickOr(4, 50), "data", func(left string, at int) error {
			got, err := stored(t, filepath.Join(left, "export"))
			switch {
			case errors.Is(err, fs.ErrNotExist) && before == nil && at < trace.Len():
				return nil // no index yet
			case err != nil:
				return err
			case got != "conv pool" && (at == trace.Len() || got != strings.Join(before, " ")):
				return fmt.Errorf("the export has %q", got)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// stored returns the workloads of an export in order, and checks all chunks. It returns fs.ErrNotExist without an
// index.
func stored(t *testing.T, dir string) (string, error) {
	if _, err := os.Stat(filepath.Join(dir, staticsite.IndexName)); err != nil {
		return "", err
	}
	export, err := staticsite.Open(t.Context(), staticsite.Folder(dir))
	if err != nil {
		return "", err
	}
	var names []string
	err = export.List(t.Context(), "", "", func(r *tilthv1.Record) error {
		names = append(names, string(r.GetWorkload()))
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.New(err.Error()) // hides fs.ErrNotExist of a chunk
	}
	slices.Sort(names)
	return strings.Join(names, " "), err
}
