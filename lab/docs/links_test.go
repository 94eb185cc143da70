package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestLinksThatLeadNowhereAreFound(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"index.html": `<a href="a/b.html#there">1</a><a href="a/b.html#gone">2</a><a href="gone.html">3</a><img src="a/c.png">
			<a href="https://example.com/any">4</a><link href="data:,">
			<a href="../index.html">5</a><a href="/index.html">6</a><a href="a">7</a>
			<a href="` + repository + `issues">8</a><a href="` + repository + `tree/main/a">9</a>`,
		"a/b.html": `<h2 id="there">x</h2><a href="../index.html">1</a><a href="#gone">2</a><img src="gone.png">
			<a href="` + repository + `blob/main/a/c.png">3</a><a href="` + repository + `blob/main/gone">4</a>`,
		"a/c.png": "",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := readSite(root)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"a/b.html: #gone: the page has no such section",
		"a/b.html: gone.png: there is no such file",
		"a/b.html: " + repository + "blob/main/gone: there is no such file",
		"index.html: a/b.html#gone: the page has no such section",
		"index.html: gone.html: there is no such file",
		"index.html: ../index.html: it leads out of the site",
		"index.html: /index.html: it leads out of the site",
		"index.html: a: there is no such file",
		"index.html: " + repository + "issues: it leads to no file of the branch main",
	}
	if got := s.broken(root); !slices.Equal(got, want) || s.links != 16 {
		t.Errorf("%d links, broken are %q; want 16, %q", s.links, got, want)
	}
	if _, err := readSite(t.TempDir()); err == nil {
		t.Error("a folder without pages is read")
	}
}

func TestPagesThatTheNavigationListsAreThere(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "lab/docs/site/data/navigation.yaml")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("groups:\n  - name: A\n    pages: [a/b.md, gone.md]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &site{pages: map[string]page{"a/b.html": {}}}
	want := []string{"navigation.yaml: gone.md: the site has no such page"}
	if got, err := s.lost(root); err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}
