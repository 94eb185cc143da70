package aot

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/tilth-dev/tilth/compiler/target"
)

// FuzzReadManifest reads archives and manifests of any bytes: what is read can be used, and the rest is refused in an error.
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
		if model, err := (Loader{Machine: machine}).load(path); err == nil { // its object is no shared object
			model.Close()
			t.Error("a package without code was loaded")
		}
	})
}
