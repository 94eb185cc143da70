package main

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
)

// The processes of the image run with this UID and GID, as in deploy/docker/Dockerfile.
const nobody = 65532

// image is an OCI image for several architectures.
type image struct {
	config v1.Config
	// name is the tag that the image gets when a tool loads it.
	name  string
	when  time.Time
	archs []imageArch
}

// imageArch holds the files of an image for an architecture, named as in Go.
type imageArch struct {
	name  string
	files []file
}

// image returns the image without architectures. It resembles stage "service" of deploy/docker/Dockerfile, but has an
// empty base.
func (s *source) image() image {
	return image{
		name: s.version, when: s.when,
		config: v1.Config{
			User:       "65532:65532",
			Env:        []string{"PATH=/usr/local/bin:/usr/bin:/bin", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt", "XDG_DATA_HOME=/var/lib", "XDG_CACHE_HOME=/var/cache"},
			Entrypoint: []string{"/usr/local/bin/tilth"},
			WorkingDir: "/",
			Labels: map[string]string{
				"org.opencontainers.image.title": "tilth", "org.opencontainers.image.version": s.version,
				"org.opencontainers.image.revision": s.commit, "org.opencontainers.image.source": home,
				"org.opencontainers.image.licenses": projectLicence,
			},
		},
	}
}

// add adds the architecture of a static program: the program itself and system files.
func (i *image) add(p program, common shared) error {
	certificates, err := authorities()
	if err != nil {
		return err
	}
	folder := func(name string, mode int64, owner int) file {
		return file{Name: name, Mode: mode, Folder: true, Owner: owner}
	}
	files := []file{
		{Name: "usr/local/bin/tilth", Mode: 0o755, Data: p.data},
		{Name: "etc/passwd", Mode: 0o644, Data: []byte("root:x:0:0:root:/root:/sbin/nologin\ntilth:x:65532:65532:Tilth:/var/lib/tilth:/sbin/nologin\n")},
		{Name: "etc/group", Mode: 0o644, Data: []byte("root:x:0:\ntilth:x:65532:\n")},
		{Name: "etc/ssl/certs/ca-certificates.crt", Mode: 0o644, Data: certificates},
		folder("tmp", 0o1777, 0),
		folder("var/lib/tilth", 0o755, nobody), folder("var/lib/tilth/tracker", 0o755, nobody),
		folder("var/cache/tilth", 0o755, nobody), folder("tmp/tilth-65532", 0o700, nobody),
	}
	for _, d := range common.documents {
		if d.Name == "LICENSE" {
			files = append(files, under("usr/share/doc/tilth", []file{d})...)
		}
	}
	files = append(files, under("usr/share/doc/tilth/licences", licenceFiles(p.modules))...)
	i.archs = append(i.archs, imageArch{p.arch, files})
	return nil
}

// write returns the image as a tar archive of an OCI layout.
func (i image) write() ([]byte, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, a := range i.archs {
		one, err := i.of(a)
		if err != nil {
			return nil, fmt.Errorf("image for %s: %w", a.name, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        one,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: a.name}},
		})
	}
	dir, err := os.MkdirTemp("", "tilth-image-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out, err := layout.Write(dir, empty.Index)
	if err == nil {
		err = out.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": i.name}))
	}
	if err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	return i.pack(dir)
}

// of returns the image for an architecture: a layer and a configuration.
func (i image) of(a imageArch) (v1.Image, error) {
	packed, err := tarGz("", a.files, i.when)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(packed)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	created := v1.Time{Time: i.when.UTC()}
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
	file.OS, file.Architecture, file.Created, file.Config = "linux", a.name, created, i.config
	return mutate.ConfigFile(one, file)
}

// pack returns a folder as a tar archive.
func (i image) pack(dir string) ([]byte, error) {
	var files []file
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		files = append(files, file{Name: filepath.ToSlash(name), Mode: 0o644, Data: data})
		return err
	})
	var out bytes.Buffer
	if err = errors.Join(err, writeTar(&out, "", files, i.when)); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// authorities returns the CA certificates that Mozilla trusts, in PEM. They come from a Go module and do not depend
// on the machine.
func authorities() ([]byte, error) {
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
