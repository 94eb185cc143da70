package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// repository creates a repository with one commit and a tag.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	put(t, dir, "CHANGELOG.md", []byte("## [1.2.0] - 2026-05-01\n\n- all\n"))
	for _, name := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"} { // set in hooks
		if _, set := os.LookupEnv(name); set {
			t.Setenv(name, "") // restored after the test
			os.Unsetenv(name)
		}
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_SYSTEM", os.DevNull)
	t.Setenv("GIT_COMMITTER_DATE", "2026-05-01T12:00:00+02:00")
	for _, args := range [][]string{
		{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "all"}, {"tag", "v1.2.0"},
	} {
		runIn(t, dir, "git", args...)
	}
	return dir
}

func TestCheckedOut(t *testing.T) {
	dir := repository(t)
	s, err := checkedOut(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC); s.version != "v1.2.0" || len(s.commit) != 40 || !s.when.Equal(want) || s.changes != "- all" {
		t.Errorf("the commit is read as %+v", s)
	}
	put(t, dir, "new", nil)
	if _, err := checkedOut(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "?? new") {
		t.Errorf("with a file that is not committed: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "new")); err != nil {
		t.Fatal(err)
	}
	runIn(t, dir, "git", "tag", "-d", "v1.2.0")
	runIn(t, dir, "git", "tag", "v1.3.0")
	if _, err := checkedOut(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "no section [1.3.0]") {
		t.Errorf("without a section in the changelog: %v", err)
	}
}

func TestClearRemovesOnlyReleases(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "tilth-old.tar.gz", nil)
	put(t, dir, sumsFile, nil)
	r := &release{out: dir}
	if err := r.clear(); err != nil {
		t.Error(err)
	}
	put(t, dir, "thesis.tex", nil)
	if err := r.clear(); err == nil || !strings.Contains(err.Error(), "thesis.tex") {
		t.Errorf("a folder with another file: %v", err)
	}
}

func TestParseArchitectures(t *testing.T) {
	if got, err := parseArchitectures("riscv64,amd64,amd64"); err != nil || !slices.Equal(got, []string{"amd64", "riscv64"}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := parseArchitectures("amd64,mips"); err == nil || !strings.Contains(err.Error(), `"mips"`) {
		t.Errorf("mips: %v", err)
	}
}

func TestManualPage(t *testing.T) {
	s := &source{version: "v1.2.0", when: time.Unix(1_800_000_000, 0)}
	page := s.page("tilth-run", "run a package", "Run.\n.hidden\n  --path C:\\x\n")
	for _, want := range []string{".TH TILTH-RUN 1 2027-01-15 \"Tilth v1.2.0\"", "tilth\\-run \\- run a package", "\n\\&.hidden\n  \\-\\-path C:\\ex\n"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}

func TestCopyrightNamesOwners(t *testing.T) {
	apache, err := os.ReadFile(filepath.Join("..", "..", "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	s := &source{version: "v1.2.0"}
	text := string(s.copyright([]module{
		{Path: "example.com/a", Version: "v1.0.0", Licence: "Apache-2.0", Texts: []file{{Name: "LICENSE", Data: append(apache, "\n   Copyright 2020 A\n"...)}}},
		{Path: "example.com/b", Version: "v1.0.0", Licence: "MIT", Texts: []file{{Name: "LICENSE", Data: []byte("MIT, of B")}}},
	}))
	for _, want := range []string{"example.com/a v1.0.0: Apache-2.0", "\nCopyright 2020 A\nSee /usr/share/common-licenses", "MIT, of B"} {
		if !strings.Contains(text, want) {
			t.Errorf("the file lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "Grant of Patent License") {
		t.Error("the text of the Apache License is repeated")
	}
}

func TestUnitsStartInstalledProgram(t *testing.T) {
	units, err := (&source{root: filepath.Join("..", "..")}).units("/usr/bin")
	if err != nil || len(units) < 4 {
		t.Fatalf("%d units, %v", len(units), err)
	}
	for _, u := range units {
		if strings.Contains(string(u.Data), "/usr/local/bin") || strings.HasSuffix(u.Name, ".service") && !strings.Contains(string(u.Data), "ExecStart=/usr/bin/tilth ") {
			t.Errorf("%s:\n%s", u.Name, u.Data)
		}
	}
}
