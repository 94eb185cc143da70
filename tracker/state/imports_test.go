package state

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestMachineKnowsNoTransportNoMetricsNoFilesAndNoClock checks the imports. Without other dependencies, the
// machine can be tested with any sequence of operations and times.
func TestMachineKnowsNoTransportNoMetricsNoFilesAndNoClock(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, imported := range parsed.Imports {
			path := strings.Trim(imported.Path.Value, `"`)
			for _, kept := range []string{"google.golang.org/grpc", "github.com/prometheus", "go.etcd.io", "net", "os", "context"} {
				if path == kept || strings.HasPrefix(path, kept+"/") {
					t.Errorf("%s imports %s", file, path)
				}
			}
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := call.X.(*ast.Ident); ok && pkg.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "NewTimer", "After", "Sleep"}, call.Sel.Name) {
				t.Errorf("%s asks the clock of the machine that it runs on: time.%s", file, call.Sel.Name)
			}
			return true
		})
	}
}
