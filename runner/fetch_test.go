package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// pinned counts the artifacts that are held.
type pinned struct {
	path string
	held int
}

func (p *pinned) Download(context.Context, *tilthv1.ArtifactRef) (string, func(), error) {
	p.held++
	return p.path, func() { p.held-- }, nil
}

func TestFailedFetchHoldsNoArtifacts(t *testing.T) {
	all := []*tilthv1.ArtifactRef{{Role: "candidates", Digest: "c"}, {Role: "reference", Digest: "r"}, {Role: "harness", Digest: "h"}}
	cases := map[string]struct {
		refs    []*tilthv1.ArtifactRef
		prepare func(t *testing.T, scratch string)
	}{
		"no reference": {all[:1], func(*testing.T, string) {}},
		"old results cannot be removed": {all, func(t *testing.T, scratch string) {
			for k := range keptResults + 1 {
				if err := os.MkdirAll(filepath.Join(scratch, fmt.Sprintf("results-%d", k), "full"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			source := &pinned{path: filepath.Join(t.TempDir(), "artifact")}
			if err := os.WriteFile(source.path, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			scratch := t.TempDir()
			c.prepare(t, scratch)
			h := NewHandler(Config{Artifacts: source, Scratch: scratch})
			if _, err := h.fetch(t.Context(), &tilthv1.MeasureWork{Artifacts: c.refs}); err == nil {
				t.Error("fetched")
			}
			if source.held != 0 {
				t.Errorf("%d artifacts are still held", source.held)
			}
		})
	}
}

// TestHarnessThatCannotBeCopiedIsNotInstalled checks that a copy that failed does not get the harness's name, under
// which it would be used from then on.
func TestHarnessThatCannotBeCopiedIsNotInstalled(t *testing.T) {
	h := &Handler{Config: Config{Scratch: t.TempDir()}}
	if _, err := h.install(t.TempDir(), "digest"); err == nil { // a folder opens, and cannot be read
		t.Error("copied a folder")
	}
	if _, err := os.Stat(filepath.Join(h.Scratch, "harness-digest")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the failed copy has its name: %v", err)
	}
}
