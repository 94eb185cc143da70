package main

import (
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/tilth-dev/tilth/lab/dist/image"
	"github.com/tilth-dev/tilth/lab/dist/licences"
	"github.com/tilth-dev/tilth/lab/dist/payload"
)

// nobody is the UID and GID of the image's processes, as in deploy/docker/Dockerfile.
const nobody = 65532

// image returns the image without architectures. It is like stage "service" of deploy/docker/Dockerfile, but on an
// empty base.
func (s *source) image() image.Image {
	return image.Image{
		Name: s.version, When: s.when,
		Config: v1.Config{
			User:       "65532:65532",
			Env:        []string{"PATH=/usr/local/bin:/usr/bin:/bin", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt", "XDG_DATA_HOME=/var/lib", "XDG_CACHE_HOME=/var/cache"},
			Entrypoint: []string{"/usr/local/bin/tilth"},
			WorkingDir: "/",
			Labels: map[string]string{
				"org.opencontainers.image.title": "tilth", "org.opencontainers.image.version": s.version,
				"org.opencontainers.image.revision": s.commit, "org.opencontainers.image.source": home,
				"org.opencontainers.image.licenses": "Apache-2.0",
			},
		},
	}
}

// addArchitecture adds the static program for an architecture with its system files.
func addArchitecture(i *image.Image, arch string, data []byte, modules []licences.Module, common shared) error {
	authorities, err := image.Authorities()
	if err != nil {
		return err
	}
	folder := func(name string, mode int64, owner int) payload.File {
		return payload.File{Name: name, Mode: mode, Folder: true, Owner: owner}
	}
	files := []payload.File{
		{Name: "usr/local/bin/tilth", Mode: 0o755, Data: data},
		{Name: "etc/passwd", Mode: 0o644, Data: []byte("root:x:0:0:root:/root:/sbin/nologin\ntilth:x:65532:65532:Tilth:/var/lib/tilth:/sbin/nologin\n")},
		{Name: "etc/group", Mode: 0o644, Data: []byte("root:x:0:\ntilth:x:65532:\n")},
		{Name: "etc/ssl/certs/ca-certificates.crt", Mode: 0o644, Data: authorities},
		folder("tmp", 0o1777, 0),
		folder("var/lib/tilth", 0o755, nobody), folder("var/lib/tilth/tracker", 0o755, nobody),
		folder("var/cache/tilth", 0o755, nobody), folder("tmp/tilth-65532", 0o700, nobody),
	}
	for _, d := range common.documents {
		if d.Name == "LICENSE" {
			files = append(files, payload.Under("usr/share/doc/tilth", []payload.File{d})...)
		}
	}
	files = append(files, payload.Under("usr/share/doc/tilth/licences", texts(modules))...)
	i.Architectures = append(i.Architectures, image.Architecture{Name: arch, Files: files})
	return nil
}
