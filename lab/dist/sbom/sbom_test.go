package sbom

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

	"github.com/tilth-dev/tilth/lab/dist/licences"
)

// TestAProgramsModulesAreListed uses the release program as its example.
func TestAProgramsModulesAreListed(t *testing.T) {
	program := filepath.Join(t.TempDir(), "dist")
	if said, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "..").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, said)
	}
	modules, err := licences.OfProgram(t.Context(), program, ".")
	if err != nil {
		t.Fatal(err)
	}
	text := write(t, modules, []byte("program"))
	if again := write(t, modules, []byte("program")); !bytes.Equal(again, text) {
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
	if !slices.ContainsFunc(doc.Packages, func(p *spdx.Package) bool { return p.PackageName == licences.StandardLibrary }) {
		t.Error("Go's standard library is not listed")
	}
}

func write(t *testing.T, modules []licences.Module, data []byte) []byte {
	t.Helper()
	text, err := Write(Release{
		Name: "example", Version: "v1.0.0", Source: "https://example.com", Commit: "abc", Licence: "Apache-2.0", When: time.Unix(1_800_000_000, 0),
		Programs: []Program{{"a/example", data, modules}, {"b/example", data, modules}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}
