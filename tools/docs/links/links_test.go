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
			<a href="https://example.com/any">4</a><link href="data:,">`,
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
	s, err := read(root)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"a/b.html: #gone: the page has no such section",
		"a/b.html: gone.png: there is no such file",
		"a/b.html: " + repository + "blob/main/gone: there is no such file",
		"index.html: a/b.html#gone: the page has no such section",
		"index.html: gone.html: there is no such file",
	}
	if got := s.broken(root); !slices.Equal(got, want) || s.links != 11 {
		t.Errorf("%d links, broken are %q; want 11, %q", s.links, got, want)
	}
	if _, err := read(t.TempDir()); err == nil {
		t.Error("a folder without pages is read")
	}
}
