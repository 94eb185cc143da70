package main

import (
	"crypto/sha256"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPipInstallsFromRelease installs from a release's folder and from a web server, which serves index.html.
func TestPipInstallsFromRelease(t *testing.T) {
	r := &release{
		source: &source{root: filepath.Join("..", ".."), version: "v1.2.0-3-gabc1234"},
		out:    t.TempDir(), work: t.TempDir(), say: func(string) {}, sums: map[string][sha256.Size]byte{},
	}
	if err := r.writeWheel(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.write("tilth-v1.2.0-linux-amd64.tar.gz", []byte("not for pip"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := r.writeIndex(); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(r.out))) // serves index.html in place of a listing
	defer server.Close()
	venv := filepath.Join(t.TempDir(), "venv")
	runIn(t, ".", "python3", "-m", "venv", venv)
	pip := func(args ...string) (string, error) {
		c := exec.Command(filepath.Join(venv, "bin", "pip"), append([]string{"--isolated", "--no-cache-dir"}, args...)...)
		c.Env = append(os.Environ(), "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1")
		text, err := c.CombinedOutput()
		return string(text), err
	}
	for _, from := range []string{r.out, server.URL + "/"} {
		install := []string{"install", "--no-index", "--no-deps", "--force-reinstall", "--find-links", from, "tilth"}
		if text, err := pip(install...); err != nil || !strings.Contains(text, "Successfully installed tilth-1.2.0.post3+gabc1234") {
			t.Errorf("from %s: %v: %s", from, err, text)
		}
	}
	wheels, _ := filepath.Glob(filepath.Join(r.out, "*.whl"))
	put(t, r.out, filepath.Base(wheels[0]), []byte("damaged"))
	text, err := pip("download", "--no-index", "--no-deps", "--dest", t.TempDir(), "--find-links", server.URL+"/", "tilth")
	if err == nil || !strings.Contains(text, "DO NOT MATCH THE HASHES") {
		t.Errorf("a damaged wheel: %v: %s", err, text)
	}
}
