package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func exampleImage(t *testing.T) []byte {
	t.Helper()
	i := image{name: "v1.0.0", when: time.Unix(1_800_000_000, 0), config: v1.Config{Entrypoint: []string{"/example"}}}
	for _, arch := range []string{"amd64", "riscv64"} {
		i.archs = append(i.archs, imageArch{arch, []file{
			{Name: "example", Mode: 0o755, Data: []byte("for " + arch)}, {Name: "tmp", Mode: 0o1777, Folder: true},
		}})
	}
	packed, err := i.write()
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

func TestImageLayout(t *testing.T) {
	packed := exampleImage(t)
	if !bytes.Equal(packed, exampleImage(t)) {
		t.Error("two archives of the same image differ")
	}
	dir := unpack(t, packed)
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	named, err := index.IndexManifest()
	if err != nil || len(named.Manifests) != 1 || named.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "v1.0.0" {
		t.Fatalf("the layout has %+v, %v", named, err)
	}
	inner, err := index.ImageIndex(named.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	images, err := inner.IndexManifest()
	if err != nil || len(images.Manifests) != 2 || images.Manifests[1].Platform.Architecture != "riscv64" {
		t.Fatalf("the index has %+v, %v", images, err)
	}
	image, err := inner.Image(images.Manifests[1].Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil || config.Architecture != "riscv64" || config.Config.Entrypoint[0] != "/example" {
		t.Errorf("the configuration is %+v, %v", config, err)
	}
}

// unpack unpacks a tar archive.
func unpack(t *testing.T, packed []byte) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for r := tar.NewReader(bytes.NewReader(packed)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o700)
		} else {
			var data []byte
			if data, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(path, data, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestAuthorities(t *testing.T) {
	text, err := authorities()
	if err != nil {
		t.Fatal(err)
	}
	if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM(text) {
		t.Error("no certificate can be read")
	}
}
