package soak

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// module creates a module with a failing test, a passing test, and a test whose process ends.
func module(t *testing.T) {
	t.Helper()
	files := map[string]string{
		"go.mod":         "module example\n\ngo 1.26\n",
		"a/a_test.go":    "package a\n\nimport \"testing\"\n\nfunc TestGood(t *testing.T) {}\n",
		"b/b_test.go":    "package b\n\nimport \"testing\"\n\nfunc TestBad(t *testing.T) { t.Run(\"part\", func(t *testing.T) { t.Error(\"no\") }) }\n",
		"c/c_test.go":    "package c\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestGone(t *testing.T) { os.Exit(3) }\n",
		"none/nobody.go": "package none\n",
	}
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

func TestEachFailureIsCountedWithItsSetting(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: compiles the tests of a module, and runs them many times")
	}
	module(t)
	args := []string{"-runs", "2", "-modes", "plain", "-procs", "1,2", "-load", "0", "-ledger", "ledger", "-keep", "kept"}
	for range 2 {
		if err := Main(t.Context(), args); err == nil || !strings.Contains(err.Error(), "8 runs failed") {
			t.Fatalf("run says %v, want that 8 runs failed", err)
		}
	}
	l, err := openLedger("ledger")
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, e := range l.entries {
		counts[e.Package] += e.Runs
	}
	// The second call does not repeat passing packages, but runs failing ones as often again.
	if want := (map[string]int{"example/a": 4, "example/b": 8, "example/c": 8}); !maps.Equal(counts, want) {
		t.Errorf("runs of both calls by package: %v, want %v", counts, want)
	}
	var out bytes.Buffer
	l.table(&out)
	for _, want := range []string{"example/b TestBad/part", "example/c (exit status 3)", "plain, GOMAXPROCS=2", "0 at least"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "example/a") {
		t.Errorf("a test that passed is told as failed:\n%s", out.String())
	}
}

func TestARunWithoutFailuresPasses(t *testing.T) {
	module(t)
	if err := Main(t.Context(), []string{"-runs", "1", "-procs", "1", "-modes", "plain", "-ledger", "ledger", "-keep", "kept", "./a"}); err != nil {
		t.Error(err)
	}
}

func TestPackagesWithFewestCleanRunsGoFirst(t *testing.T) {
	plain, race := setting{Processors: 1}, setting{Race: true, Processors: 1}
	a, b := binary{pkg: "a"}, binary{pkg: "b"}
	p := newPlan(options{runs: 2, settings: []setting{plain, race}}, map[bool][]binary{false: {a, b}, true: {a, b}}, map[place]*entry{
		{"a", plain}: {Clean: 2}, {"a", race}: {Clean: 1}, {"b", plain}: {Clean: 1},
	})
	var order []string
	for j, ok := p.next(); ok; j, ok = p.next() {
		order = append(order, j.pkg+" "+j.setting.String())
	}
	want := []string{"b race, GOMAXPROCS=1", "b plain, GOMAXPROCS=1", "a race, GOMAXPROCS=1", "b race, GOMAXPROCS=1"}
	if !slices.Equal(order, want) {
		t.Errorf("order %q, want %q", order, want)
	}
}

func TestFailingPackagesWaitTheirTurn(t *testing.T) {
	s := setting{Processors: 1}
	p := newPlan(options{runs: 3, settings: []setting{s}}, map[bool][]binary{false: {{pkg: "a"}, {pkg: "b"}}}, nil)
	order := ""
	for j, ok := p.next(); ok; j, ok = p.next() {
		r := result{Package: j.pkg, setting: j.setting}
		if order += j.pkg; order == "a" {
			r.Failed = []string{"TestA"}
		}
		p.done(r)
	}
	if order != "ababab" {
		t.Errorf("order %s, want ababab", order)
	}
}

func TestFailuresResetTheCountAndAreRecorded(t *testing.T) {
	var e entry
	for _, r := range []result{{Revision: "1"}, {Revision: "2", Failed: []string{"TestB"}}, {Revision: "3"}, {Revision: "4"}} {
		e.add(r)
	}
	if e.Runs != 4 || e.Clean != 2 || e.From != "3" || e.To != "4" || e.Failures["TestB"] != 1 {
		t.Errorf("%+v, want 4 runs, 2 of them clean, from 3 to 4, and one failure of TestB", e)
	}
}

func TestPackagesThatAreGoneAreForgotten(t *testing.T) {
	l := &ledger{"", map[place]*entry{{"a", setting{}}: {}, {"b", setting{}}: {}}}
	if l.forget([]binary{{pkg: "b"}}); len(l.entries) != 1 || l.entries[place{"b", setting{}}] == nil {
		t.Errorf("%v are left, want b alone", l.entries)
	}
}

func TestADamagedLedgerIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	if err := os.WriteFile(path, []byte("{\"package\":"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openLedger(path); err == nil || !strings.Contains(err.Error(), "remove "+path) {
		t.Errorf("%v, want an error that says to remove the file", err)
	}
}

func TestBadSettingsAreRefused(t *testing.T) {
	for _, args := range [][]string{{"-modes", "fast"}, {"-procs", "0"}, {"-procs", "many"}} {
		if err := Main(t.Context(), args); err == nil || !strings.Contains(err.Error(), args[0]) {
			t.Errorf("%v: %v, want an error that names the flag", args, err)
		}
	}
}

func TestAParentOfFailingPartsIsNotCounted(t *testing.T) {
	out := "--- FAIL: TestA (0.1s)\n    --- FAIL: TestA/b (0.0s)\n    --- PASS: TestA/c (0.0s)\n--- FAIL: TestB (0.1s)\n"
	if got := failed([]byte(out), errors.New("x")); !slices.Equal(got, []string{"TestA/b", "TestB"}) {
		t.Errorf("failed = %v", got)
	}
}
