package main

import (
	"context"
	"fmt"
	"html"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// indexFile lists all files of a release as links. With it, 'pip install --find-links URL' works on any web server.
const indexFile = "index.html"

// writeWheel adds the Python package. Its build backend needs Python alone.
func (r *release) writeWheel(ctx context.Context) error {
	c := exec.CommandContext(ctx, "python3", filepath.Join(r.root, "python", "backend.py"), r.work)
	c.Env = append(os.Environ(), "TILTH_VERSION="+r.version, "PYTHONDONTWRITEBYTECODE=1")
	printed, err := c.Output()
	if err != nil {
		return fmt.Errorf("build the wheel with python3: %w", said(err))
	}
	path := strings.TrimSpace(string(printed))
	wheel, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return r.write(filepath.Base(path), wheel, 0o644)
}

// writeIndex writes the page that pip reads. Digests in its links make pip refuse damaged files.
func (r *release) writeIndex() error {
	var page strings.Builder
	fmt.Fprintf(&page, "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>Tilth %s</title>\n", html.EscapeString(r.version))
	for _, name := range r.names() {
		fmt.Fprintf(&page, "<p><a href=\"%s#sha256=%x\">%s</a></p>\n", url.PathEscape(name), r.sums[name], html.EscapeString(name))
	}
	return r.write(indexFile, []byte(page.String()), 0o644)
}

// names returns the names of the files that were written, in order.
func (r *release) names() (names []string) {
	for name := range r.sums {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
