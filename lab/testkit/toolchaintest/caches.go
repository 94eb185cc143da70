package toolchaintest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// cacheParts lists the directories of the program's cache that tests may share: builds and object files, keyed by
// the digest of their inputs, and the measured rates of this machine.
var cacheParts = []string{"builds", "objects", "rates"}

// cacheAge is the time for which the caches of a toolchain version outlive their last use.
const cacheAge = 14 * 24 * time.Hour

// Cache returns a directory in the user's cache that the tests of all packages share between runs. Files must be
// keyed by all their inputs, except for the code of the toolchain: each version of it has its own directories. The
// parts that ShareCaches links to are builds, objects and rates.
func Cache(t testing.TB, part string) string {
	t.Helper()
	dir, err := sharedCache(part)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Objects returns the object cache that the tests of all packages share between runs.
func Objects() (*toolchain.Objects, error) {
	dir, err := sharedCache("objects")
	if err != nil {
		return nil, err
	}
	return toolchain.OpenObjects(dir, 0)
}

// ShareCaches replaces the parts of a program's cache directory that are the same for every test by links to shared
// directories. Otherwise each test would compile the same harnesses and references, and measure the machine, again.
// Scratch directories and records stay separate.
func ShareCaches(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, part := range cacheParts {
		shared, err := sharedCache(part)
		if err != nil {
			return err
		}
		if err := os.Symlink(shared, filepath.Join(dir, part)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

func sharedCache(part string) (string, error) {
	caches, err := versionCaches()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(caches, part)
	return dir, os.MkdirAll(dir, 0o700)
}

// versionCaches returns the directory of this version of the toolchain. It removes those of versions no longer
// tested.
var versionCaches = sync.OnceValues(func() (string, error) {
	version, err := toolchainVersion()
	if err != nil {
		return "", fmt.Errorf("version of the toolchain: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	versions := filepath.Join(cache, "tilth-tests", "toolchain")
	dir := filepath.Join(versions, version)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	now := time.Now()
	_ = os.Chtimes(dir, now, now) // the directory may be another user's
	entries, err := os.ReadDir(versions)
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && now.Sub(info.ModTime()) > cacheAge {
			_ = os.RemoveAll(filepath.Join(versions, entry.Name())) // a later run will
		}
	}
	return dir, err
})

// toolchainVersion returns the digest of the toolchain's code, which affects build outputs.
func toolchainVersion() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	err = filepath.WalkDir(filepath.Join(root, "compiler", "toolchain"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(sum, "%s %d\n", d.Name(), len(text))
		_, _ = sum.Write(text) // a hash never fails
		return err
	})
	return hex.EncodeToString(sum.Sum(nil))[:16], err
}

// moduleRoot returns the directory of go.mod above the working directory, which is that of the package under test.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod above the working folder")
		}
		dir = parent
	}
}
