package conventions_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/tilth-dev/tilth/"

// layers lists folders bottom up, each with the folders that its packages may import besides itself. They all precede
// it in the list, so imports have no cycles between folders. A package belongs to the longest matching folder.
var layers = []struct {
	name    string
	imports []string
}{
	{"proto", nil},
	{"internal", []string{"proto"}},
	{"internal/sandbox", []string{"internal"}},
	{"internal/access", []string{"proto", "internal"}},
	{"compiler", []string{"internal", "internal/sandbox"}},
	{".", []string{"internal", "compiler"}}, // the public API
	{"costmodel", []string{"internal", "compiler"}},
	{"records", []string{"proto", "internal"}},
	{"records/bolt", []string{"proto", "internal", "records"}},
	{"records/postgres", []string{"proto", "internal", "records"}},
	{"internal/artifact", []string{"proto", "internal", "records"}},
	{"internal/artifact/s3", []string{"records", "internal/artifact"}},
	{"internal/agent", []string{"proto", "internal"}},
	{"builder", []string{"proto", "internal", "compiler", "internal/agent"}},
	{"runner", []string{"proto", "internal", "compiler", "internal/sandbox", "internal/agent"}},
	{"client", []string{"proto", "internal", "compiler", "internal/artifact", "internal/agent"}},
	{"tracker/policy", []string{"proto", "internal"}},
	{"tracker/state", []string{"proto", "internal", "records", "tracker/policy"}},
	{"tracker/coordinator", []string{"proto", "internal", "records", "internal/artifact", "tracker/state"}},
	{"tracker/telemetry", []string{"proto", "internal", "records", "internal/artifact", "tracker/policy", "tracker/state"}},
	{"tracker/rpc", []string{"proto", "internal", "internal/access", "records", "internal/artifact", "tracker/state", "tracker/coordinator"}},
	{"tuner/progress", []string{"proto", "internal"}},
	{"tracker/web", []string{"proto", "internal", "internal/access", "tracker/policy", "tuner/progress"}},
	{"tracker", []string{
		"proto", "internal", "internal/access", "records", "internal/artifact",
		"tracker/policy", "tracker/state", "tracker/coordinator", "tracker/telemetry", "tracker/rpc", "tracker/web",
	}},
	{"tuner", []string{
		"proto", "internal", "internal/sandbox", "compiler", "costmodel", "internal/agent", "client", "records", "records/bolt", "tuner/progress",
	}},
	{"internal/farm", []string{
		"proto", "internal", "internal/access", "compiler", "internal/sandbox", "records", "records/bolt", "records/postgres", "internal/artifact", "internal/artifact/s3", "internal/agent", "tuner",
		"builder", "runner", "client", "tracker", "tracker/policy",
	}},
	{"lab", nil}, // anything
	{"cmd/tilth/display", []string{"proto", "internal", "tuner/progress"}},
	{"cmd", nil}, // anything except lab
}

// layer returns the folder of a package in layers, or "".
func layer(pkg string) (name string) {
	for _, r := range layers {
		if (pkg == r.name || strings.HasPrefix(pkg, r.name+"/")) && len(r.name) > len(name) {
			name = r.name
		}
	}
	return name
}

func TestLayersImportOnlyLowerLayers(t *testing.T) {
	var lower []string
	for _, r := range layers {
		for _, known := range r.imports {
			if !slices.Contains(lower, known) {
				t.Errorf("%s may import %s, which does not precede it", r.name, known)
			}
		}
		lower = append(lower, r.name)
	}
}

func TestPackagesImportOnlyWhatTheirLayerMay(t *testing.T) {
	knows := map[string][]string{}
	for _, r := range layers {
		knows[r.name] = r.imports
	}
	edges := 0
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch name := entry.Name(); {
		case entry.IsDir() && (name == "testdata" || name == "dist" || name == "docs" || name == "deploy" || strings.HasPrefix(name, ".") && name != ".."):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		from := layer(filepath.ToSlash(folder))
		if from == "" {
			t.Errorf("%s is in no layer", file)
		}
		for _, imported := range parsed.Imports {
			address, err := strconv.Unquote(imported.Path.Value)
			if err != nil {
				return err
			}
			pkg, ours := strings.CutPrefix(path.Clean(address), module)
			if !ours || from == "cmd" || from == "lab" {
				continue
			}
			edges++
			if to := layer(pkg); to != from && !slices.Contains(knows[from], to) {
				t.Errorf("%s imports %s: %s may not import %s", file, pkg, from, to)
			}
		}
		return nil
	})
	if err != nil || edges < 1000 {
		t.Errorf("%d imports were checked: %v", edges, err)
	}
}

// only lists packages with all packages of the module that they may import. The stages of the front end only share
// the graph, except that programgen uses layout. The cost of schedules does not depend on sketches.
var only = map[string][]string{
	"compiler/graph":                 {"compiler/array", "compiler/extent", "compiler/op"},
	"compiler/program":               {"compiler/array", "compiler/expr"},
	"compiler/frontend/importer":     {"compiler/array", "compiler/extent", "compiler/graph", "compiler/onnx", "compiler/op"},
	"compiler/frontend/rewrite":      {"compiler/array", "compiler/extent", "compiler/graph", "compiler/onnx", "compiler/op"},
	"compiler/frontend/layout":       {"compiler/array", "compiler/expr", "compiler/extent", "compiler/graph", "compiler/op", "compiler/program"},
	"compiler/frontend/programgen":   {"compiler/array", "compiler/expr", "compiler/extent", "compiler/frontend/layout", "compiler/graph", "compiler/op", "compiler/program"},
	"compiler/backend/cpu/microarch": {"compiler/array", "compiler/target"},
	"compiler/backend/cpu/cost": {
		"compiler/array", "compiler/backend/cpu/microarch", "compiler/expr", "compiler/costfeatures", "compiler/schedule", "compiler/target",
	},
}

func TestStagesImportOnlyTheirInputs(t *testing.T) { importsAreOf(t, only) }

// importsAreOf checks that packages only import the listed packages of the module.
func importsAreOf(t *testing.T, list map[string][]string) {
	t.Helper()
	for pkg, knows := range list {
		listed, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{join .Imports "\n"}}`, module+pkg).Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, imported := range strings.Fields(string(listed)) {
			if known, ours := strings.CutPrefix(imported, module); ours && !slices.Contains(knows, known) {
				t.Errorf("%s imports %s", pkg, known)
			}
		}
	}
}

// TestProductLinksNoLaboratory keeps benchmarks, simulations and faults out of the program that users install.
func TestProductLinksNoLaboratory(t *testing.T) {
	linked, err := exec.CommandContext(t.Context(), "go", "list", "-deps", module+"cmd/tilth").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, dep := range strings.Fields(string(linked)) {
		if strings.HasPrefix(dep+"/", module+"lab/") {
			t.Errorf("cmd/tilth links %s", dep)
		}
	}
}

// TestDigestsLinkNoStore checks that packages that only need digests or record rules do not link a database. The same
// holds for the tracker, which receives its store as an argument.
func TestDigestsLinkNoStore(t *testing.T) {
	for _, pkg := range []string{"records", "internal/artifact", "client", "tracker"} {
		linked, err := exec.CommandContext(t.Context(), "go", "list", "-deps", module+pkg).Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, dep := range strings.Fields(string(linked)) {
			if strings.HasPrefix(dep, "go.etcd.io/bbolt") || strings.HasPrefix(dep, "github.com/jackc/pgx") || strings.HasPrefix(dep, module+"records/") && dep != module+"records/storesync" {
				t.Errorf("%s links %s", pkg, dep)
			}
		}
	}
}
