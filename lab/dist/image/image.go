package image

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/tilth-dev/tilth/lab/dist/payload"
)

// Image is a container image for several architectures.
type Image struct {
	Architectures []Architecture
	Config        v1.Config
	// Name is the tag of the image when tools load it.
	Name string
	When time.Time
}

// Architecture is a Go architecture with the image's files for it.
type Architecture struct {
	Name  string
	Files []payload.File
}

// Write returns the archive.
func (i Image) Write() ([]byte, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, a := range i.Architectures {
		one, err := i.of(a)
		if err != nil {
			return nil, fmt.Errorf("image for %s: %w", a.Name, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        one,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: a.Name}},
		})
	}
	dir, err := os.MkdirTemp("", "tilth-image-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out, err := layout.Write(dir, empty.Index)
	if err == nil {
		err = out.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": i.Name}))
	}
	if err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	return i.pack(dir)
}

// of returns the image for one architecture: a layer and a configuration.
func (i Image) of(a Architecture) (v1.Image, error) {
	packed, err := payload.TarGz("", a.Files, i.When)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(packed)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	created := v1.Time{Time: i.When.UTC()}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	one, err := mutate.Append(base, mutate.Addendum{Layer: layer, History: v1.History{Created: created, CreatedBy: "tilth-dist"}})
	if err != nil {
		return nil, err
	}
	file, err := one.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created, file.Config = "linux", a.Name, created, i.Config
	return mutate.ConfigFile(one, file)
}

// pack writes a layout's folder as a tar archive.
func (i Image) pack(dir string) ([]byte, error) {
	var files []payload.File
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		files = append(files, payload.File{Name: filepath.ToSlash(name), Mode: 0o644, Data: data})
		return err
	})
	var out bytes.Buffer
	if err = errors.Join(err, payload.Tar(&out, "", files, i.When)); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Authorities returns the CA certificates that Mozilla trusts, as a file for /etc/ssl/certs. They come from a module,
// so they do not depend on the machine.
func Authorities() ([]byte, error) {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil { // a file cannot express it
			continue
		}
		if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	if out.Len() == 0 {
		return nil, errors.New("the list of authorities is empty")
	}
	return out.Bytes(), nil
}
