package conventions_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestTreeFitsIntegersOf32Bits type-checks every package for 32-bit Arm, as boards run runners too. It checks the
// source of all dependencies, because compiling them takes minutes.
func TestTreeFitsIntegersOf32Bits(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := packages.Load(&packages.Config{
		Context: t.Context(), Dir: root, Env: append(os.Environ(), "GOARCH=arm", "GOARM=7", "CGO_ENABLED=0"),
		Mode: packages.NeedName | packages.NeedImports | packages.NeedDeps | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesSizes |
			packages.NeedFiles | packages.NeedCompiledGoFiles,
		ParseFile: func(set *token.FileSet, name string, text []byte) (*ast.File, error) {
			file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
			if err == nil && !strings.HasPrefix(name, root) {
				for _, d := range file.Decls {
					if f, ok := d.(*ast.FuncDecl); ok {
						f.Body = nil
					}
				}
			}
			return file, err
		},
	}, "./...")
	if err != nil {
		t.Fatal(err)
	}
	if len(loaded) < 100 {
		t.Errorf("%d packages type-checked", len(loaded))
	}
	for _, p := range loaded {
		for _, e := range p.Errors {
			t.Errorf("%s: %v", p.PkgPath, e)
		}
	}
}
