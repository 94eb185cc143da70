package runner

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// files holds a batch's downloaded artifacts.
type files struct {
	candidates         []string
	reference, harness string
	// origin separates cached results of this batch's builder from those of others.
	origin buildOrigin
	// results is the cache file of the reference's results.
	results  string
	releases []func()
}

func (f *files) release() {
	for _, release := range f.releases {
		release()
	}
}

// fetch downloads the artifacts of a batch.
func (h *Handler) fetch(ctx context.Context, batch *tilthv1.MeasureWork) (f *files, err error) {
	f = &files{origin: buildOrigin{builtBy: batch.GetBuiltBy()}}
	defer func() {
		if err != nil {
			f.release()
		}
	}()
	for _, ref := range batch.GetArtifacts() {
		path, release, err := h.download(ctx, ref)
		if err != nil {
			return f, err
		}
		f.releases = append(f.releases, release)
		switch ref.GetRole() {
		case wire.RoleCandidates:
			f.candidates = append(f.candidates, path)
		case wire.RoleReference:
			f.reference, f.origin.reference = path, ref.GetDigest()
		case wire.RoleHarness:
			f.origin.harness = ref.GetDigest()
			if f.harness, err = h.install(path, ref.GetDigest()); err != nil {
				return f, err
			}
		}
	}
	if len(f.candidates) == 0 || f.reference == "" || f.harness == "" {
		return f, &agent.FarmError{Cause: fmt.Errorf("runner: batch %s lacks artifacts: candidates, reference and harness are needed", batch.GetBatchId())}
	}
	f.results = filepath.Join(h.Scratch, "results-"+f.origin.key(h.Seed, h.Emulator))
	return f, h.tidy()
}

// install makes an executable copy of the harness, because files in the artifact cache are not executable.
func (h *Handler) install(path, digest string) (string, error) {
	program := filepath.Join(h.Scratch, "harness-"+digest)
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	source, err := os.Open(path)
	if err == nil {
		err = errors.Join(replaceFile(program, 0o755, source), source.Close())
	}
	if err != nil {
		return "", fmt.Errorf("runner: installing the harness: %w", err)
	}
	return program, nil
}

// replaceFile writes a file atomically. It is closed before it gets its name, because a program that is open for
// writing cannot be executed.
func replaceFile(path string, mode fs.FileMode, content io.Reader) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), ".install-*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) // fails after the rename
	_, err = io.Copy(temporary, content)
	if err = cmp.Or(err, temporary.Chmod(mode), temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}

// keptResults is the number of cached reference results.
const keptResults = 64

// tidy removes the oldest reference results.
func (h *Handler) tidy() error {
	names, err := filepath.Glob(filepath.Join(h.Scratch, "results-*"))
	if err != nil || len(names) <= keptResults {
		return err
	}
	var infos []fs.FileInfo
	for _, name := range names {
		if info, err := os.Stat(name); err == nil {
			infos = append(infos, info)
		}
	}
	slices.SortFunc(infos, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, info := range infos[min(keptResults, len(infos)):] {
		// Concurrent batches may tidy at the same time.
		if err := os.Remove(filepath.Join(h.Scratch, info.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("runner: removing old results: %w", err)
		}
	}
	return nil
}

// buildOrigin identifies the origin of cached results. Results of a hostile harness must not be used with an honest
// one, and results of one builder's harness must not be used for another builder's batch.
type buildOrigin struct {
	// builtBy identifies the owner of the builder; harness and reference are digests.
	builtBy, harness, reference string
}

// key returns a cache key for the reference's results that covers all their inputs: the origin, the programs,
// the data and the launcher.
func (m buildOrigin) key(seed uint64, launcher []string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %d %q", m.builtBy, m.harness, m.reference, seed, launcher))
	return hex.EncodeToString(sum[:])
}

// device returns the key of a device class's calibrations, which a harness reports.
func (m buildOrigin) device(class string) string {
	return fmt.Sprintf("%q %q %q", class, m.builtBy, m.harness)
}
