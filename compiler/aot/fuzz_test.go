package aot

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/target"
)

// FuzzReadManifest reads archives and manifests of any bytes: accepted ones must be usable.
func FuzzReadManifest(f *testing.F) {
	machine, err := target.Native(1)
	if err != nil {
		f.Fatal(err)
	}
	good, err := json.Marshal(&Manifest{Format: Format, Target: machine})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range [][]byte{nil, []byte("{"), []byte("null"), good} {
		f.Add(seed, []byte(nil))
	}
	f.Add([]byte("{}"), []byte("model.so"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, manifest, archive []byte) {
		path := filepath.Join(dir, "package.tar")
		packed := archive
		if len(archive) == 0 {
			packed = repack(t, map[string][]byte{objectName: []byte("object"), weightsName: make([]byte, 64), manifestName: manifest})
		}
		if err := os.WriteFile(path, packed, 0o644); err != nil {
			t.Fatal(err)
		}
		m, err := ReadManifest(path)
		if err != nil {
			return
		}
		if err := m.runsHere(machine); err != nil {
			return
		}
		if _, err := json.Marshal(m); err != nil {
			t.Errorf("a manifest that was read cannot be written: %v", err)
		}
		if model, err := (Loader{Machine: machine}).load(t.Context(), path); err == nil { // its object is no shared object
			model.Close()
			t.Error("a package without code was loaded")
		}
	})
}

// FuzzArchive indexes archives of any bytes: members must lie within the file, be few, and have distinct names.
func FuzzArchive(f *testing.F) {
	whole := func(headers ...*tar.Header) []byte {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range headers {
			if err := w.WriteHeader(h); err != nil {
				f.Fatal(err)
			}
			if _, err := w.Write(make([]byte, h.Size)); err != nil {
				f.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			f.Fatal(err)
		}
		return b.Bytes()
	}
	object, manifest := &tar.Header{Name: objectName, Size: 100, Mode: 0o644}, &tar.Header{Name: manifestName, Size: 2, Mode: 0o644}
	f.Add(whole(object, manifest))
	f.Add(whole(object, manifest)[:600])
	f.Add(whole(object, object))
	huge := whole(object, manifest)
	copy(huge[124:136], "\x80\x00\x00\x00\x7f\xff\xff\xff\xff\xff\xff\xff") // a size in base 256 that overflows with any offset
	f.Add(huge)
	var many []*tar.Header
	for k := range maxMembers + 1 {
		many = append(many, &tar.Header{Name: strconv.Itoa(k), Mode: 0o644})
	}
	f.Add(whole(many...))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, archive []byte) {
		path := filepath.Join(dir, "package.tar")
		if err := os.WriteFile(path, archive, 0o644); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		members, err := index(file)
		if err != nil {
			return
		}
		if len(members) > maxMembers {
			t.Errorf("%d members", len(members))
		}
		for name, e := range members {
			if e.offset < 0 || e.size < 0 || e.offset+e.size > int64(len(archive)) || e.offset+e.size < e.offset {
				t.Errorf("%q is at %d, of %d bytes, in a file of %d", name, e.offset, e.size, len(archive))
			}
		}
	})
}

// TestArchiveHasEachMemberOnce: with duplicates, the verified member would depend on the reader.
func TestArchiveHasEachMemberOnce(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for range 2 {
		if err := w.WriteHeader(&tar.Header{Name: objectName, Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "package.tar")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadManifest(path); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("got %v", err)
	}
}
