package mutation

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// TestEveryMutationFitsTheCode keeps the table in step with the code and with docs/reliability.md.
func TestEveryMutationFitsTheCode(t *testing.T) {
	promises, err := os.ReadFile(filepath.Join(root, "docs/reliability.md"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			if names[m.name] {
				t.Error("there is another one of that name")
			}
			names[m.name] = true
			if text, err := m.mutate(root); err != nil {
				t.Error(err)
			} else if m.from == m.to || text == "" {
				t.Error("it changes nothing")
			}
			if !strings.Contains(string(promises), "`"+m.test+"`") {
				t.Errorf("docs/reliability.md does not name %s", m.test)
			}
			if !declares(t, filepath.Join(root, m.pkg), m.test) {
				t.Errorf("there is no %s in %s", m.test, m.pkg)
			}
		})
	}
}

func declares(t *testing.T, dir, test string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	declaration := regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(test) + `\(`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if declaration.Match(text) {
			return true
		}
	}
	return false
}

// module creates a module whose tests kill one of two mutations.
func module(t *testing.T) *campaign {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module example\n\ngo 1.26\n",
		"a.go":      "package example\n\nfunc Twice(n int) int { return n + n }\n",
		"a_test.go": "package example\n\nimport \"testing\"\n\nfunc TestTwice(t *testing.T) {\n\tif Twice(2) != 4 {\n\t\tt.Fail()\n\t}\n}\n\nfunc TestBad(t *testing.T) { t.Fail() }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &campaign{root: dir, limit: 60e9}
}

func TestVerdicts(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: compiles a module for each mutation")
	}
	c := module(t)
	for want, m := range map[verdict]mutation{
		killed:   {from: "n + n", to: "n", test: "TestTwice"},
		survived: {from: "n + n", to: "n * n", test: "TestTwice"},
		stale:    {from: "n - n", to: "n", test: "TestTwice"},
		broken:   {from: "n + n", to: "n", test: "TestBad"},
	} {
		m.file, m.pkg = "a.go", "."
		if got, err := c.try(t.Context(), m); got != want {
			t.Errorf("%q for %q is %s (%v), want %s", m.to, m.from, got, err, want)
		}
	}
	uncompiled := mutation{file: "a.go", pkg: ".", from: "n + n", to: "none", test: "TestTwice"}
	if got, err := c.try(t.Context(), uncompiled); got != stale || err == nil || !strings.Contains(err.Error(), "does not compile") {
		t.Errorf("a mutation that does not compile is %s: %v", got, err)
	}
	absent := mutation{file: "a.go", pkg: ".", from: "n + n", to: "n", test: "TestNowhere"}
	if got, err := c.try(t.Context(), absent); got != broken {
		t.Errorf("a mutation whose test is nowhere is %s: %v", got, err)
	}
	noticed := mutation{name: "one", file: "a.go", pkg: ".", from: "n + n", to: "n", test: "TestTwice"}
	missed := mutation{name: "other", file: "a.go", pkg: ".", from: "n + n", to: "n * n", test: "TestTwice"}
	for _, parallel := range []int{1, 3} {
		if err := c.run(t.Context(), []mutation{noticed, missed, noticed}, parallel); err == nil || !strings.HasSuffix(err.Error(), "1 of 3 mutations were not killed: other") {
			t.Errorf("a campaign with a survivor says %v", err)
		}
	}
}
