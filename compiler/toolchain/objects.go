package toolchain

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed" // for the conversions
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/filesystem"
)

// Objects caches object files between builds in a directory, keyed by the digest of all inputs: the source and its
// headers, the compiler and its flags. An entry ends with its own digest, so that a damaged one is detected and
// rebuilt. Failures to read or write the directory cost time but never fail a build. Objects is safe for concurrent
// use, also by several processes.
type Objects struct{ dir *filesystem.LRUDir }

// OpenObjects opens a cache directory and creates it if necessary. A cap of 0 means 1 GiB.
func OpenObjects(dir string, capBytes int64) (*Objects, error) {
	files, err := filesystem.OpenLRU(dir, capBytes)
	if err != nil {
		return nil, fmt.Errorf("objects: %w", err)
	}
	return &Objects{files}, nil
}

// fetch writes the object with that key to a file and reports whether it was cached.
func (o *Objects) fetch(key, file string) bool {
	if !o.dir.Touch(key) {
		return false
	}
	data, err := os.ReadFile(o.dir.Path(key))
	if err != nil {
		return false
	}
	object, ok := unseal(data)
	return ok && os.WriteFile(file, object, 0o600) == nil
}

// keep stores an object file under a key, evicting others to make room.
func (o *Objects) keep(key, file string) {
	object, err := os.ReadFile(file)
	if err != nil {
		return
	}
	err = filesystem.WriteFile(o.dir.Path(key), func(w io.Writer) error {
		_, err := w.Write(seal(object))
		return err
	})
	if err == nil {
		_ = o.dir.Evict(key)
	}
}

func seal(object []byte) []byte {
	sum := sha256.Sum256(object)
	return append(bytes.Clone(object), sum[:]...)
}

func unseal(data []byte) (object []byte, ok bool) {
	if len(data) < sha256.Size {
		return nil, false
	}
	object = data[:len(data)-sha256.Size]
	sum := sha256.Sum256(object)
	return object, bytes.Equal(sum[:], data[len(object):])
}

// objectKey returns the digest of an object file's inputs.
func (tc *Toolchain) objectKey(compiler string, args []string, b Build, source string) string {
	var text string
	for _, f := range b.Sources {
		if f.Name == source {
			text = f.Text
		}
	}
	parts := []any{Identity(compiler), args, b.Headers, text}
	for _, e := range b.Embedded {
		if strings.Contains(text, e.Name) {
			parts = append(parts, e.Build.Flags, e.Build.Sources, e.Build.Assemble, tc.For(e.Build.Target))
		}
	}
	data, err := json.Marshal(parts)
	if err != nil {
		panic(err) // texts always encode
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// halfSource provides float16 conversions for RISC-V processors without instructions for them: the support library
// of gcc 12, which Debian 12's cross compilers use, lacks them.
//
//go:embed src/half.c
var halfSource string

var halfFunctions = []string{"__extendhfsf2", "__truncsfhf2", "__truncdfhf2"}

// withHalves adds the float16 conversions to objects that call them, if the compiler's library may lack them.
func (tc *Toolchain) withHalves(ctx context.Context, b Build, dir string, objects []string) ([]string, error) {
	if b.Target.Arch() != target.RISCV || !slices.ContainsFunc(objects, func(name string) bool { return convertsHalves(filepath.Join(dir, name)) }) {
		return objects, nil
	}
	const name = "tilth_half.c"
	if err := writeFiles(dir, []File{{name, halfSource}}); err != nil {
		return nil, err
	}
	object := "tilth_half.o"
	if err := tc.compile(ctx, Build{Target: b.Target, Form: b.Form, Limits: b.Limits}, dir, name, object); err != nil {
		return nil, err
	}
	return append(slices.Clone(objects), object), nil
}

func convertsHalves(path string) bool {
	undefined, err := undefinedSymbols(path)
	return err == nil && slices.ContainsFunc(undefined, func(symbol string) bool { return slices.Contains(halfFunctions, symbol) })
}
