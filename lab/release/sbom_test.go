package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdxlib"
)

// TestSBOM lists the modules of this command itself.
func TestSBOM(t *testing.T) {
	program := filepath.Join(t.TempDir(), "dist")
	if said, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, said)
	}
	modules, err := programModules(t.Context(), program, ".")
	if err != nil {
		t.Fatal(err)
	}
	text := exampleSBOM(t, modules)
	if again := exampleSBOM(t, modules); !bytes.Equal(again, text) {
		t.Error("two lists of the same differ")
	}
	doc, err := spdxjson.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(doc); err != nil || doc.SPDXVersion != "SPDX-2.3" {
		t.Errorf("%s: %v", doc.SPDXVersion, err)
	}
	i := slices.IndexFunc(doc.Packages, func(p *spdx.Package) bool { return p.PackageName == "github.com/spdx/tools-golang" })
	if i < 0 {
		t.Fatal("a module of this program is not listed")
	}
	if p := doc.Packages[i]; !strings.Contains(p.PackageLicenseConcluded, "Apache-2.0") || !strings.Contains(p.PackageComment, "h1:") {
		t.Errorf("the module's licence is %q, its digest %q", p.PackageLicenseConcluded, p.PackageComment)
	}
	if n := len(doc.Files); n != 2 || len(doc.Files[0].Checksums) != 2 {
		t.Errorf("%d files, the first with %v", n, doc.Files[0].Checksums)
	}
	if !slices.ContainsFunc(doc.Packages, func(p *spdx.Package) bool { return p.PackageName == standardLibrary }) {
		t.Error("Go's standard library is not listed")
	}
}

func exampleSBOM(t *testing.T, modules []module) []byte {
	t.Helper()
	s := &source{version: "v1.0.0", commit: "abc", when: time.Unix(1_800_000_000, 0)}
	text, err := s.sbom([]program{{arch: "amd64", data: []byte("program"), modules: modules}, {arch: "arm64", data: []byte("program"), modules: modules}})
	if err != nil {
		t.Fatal(err)
	}
	return text
}
