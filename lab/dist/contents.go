package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/lab/dist/licences"
	"github.com/tilth-dev/tilth/lab/dist/payload"
)

// read reads files of the repository, named by their base names.
func (s *source) read(names ...string) (files []payload.File, err error) {
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(s.root, name))
		if err != nil {
			return nil, err
		}
		files = append(files, payload.File{Name: path.Base(name), Mode: 0o644, Data: data})
	}
	return files, nil
}

// units returns the files of deploy/systemd, with the folder of the programs filled in.
func (s *source) units(programs string) (files []payload.File, err error) {
	const folder = "deploy/systemd"
	err = fs.WalkDir(os.DirFS(s.root), folder, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(s.root, name))
		if err != nil {
			return err
		}
		const written = "ExecStart=/usr/local/bin/"
		if strings.HasSuffix(name, ".service") && !bytes.Contains(data, []byte(written)) {
			return fmt.Errorf("%s does not start a program of /usr/local/bin", name)
		}
		data = bytes.ReplaceAll(data, []byte(written), []byte("ExecStart="+programs+"/"))
		files = append(files, payload.File{Name: strings.TrimPrefix(name, folder+"/"), Mode: 0o644, Data: data})
		return nil
	})
	return files, err
}

// texts returns the licences of modules, in a folder for each.
func texts(modules []licences.Module) (files []payload.File) {
	for _, m := range modules {
		for _, t := range m.Texts {
			files = append(files, payload.File{Name: m.Path + "@" + m.Version + "/" + t.Name, Mode: 0o644, Data: t.Data})
		}
	}
	return files
}

// shared is the common content of all archives besides the program.
type shared struct {
	documents, completions, manual []payload.File
}

// archive returns the files of an archive.
func (s *source) archive(p program, data []byte, modules []licences.Module, common shared) ([]payload.File, error) {
	units, err := s.units("/usr/local/bin")
	if err != nil {
		return nil, err
	}
	scripts, err := s.read("deploy/install-runner.sh")
	if err != nil {
		return nil, err
	}
	files := slices.Concat(
		[]payload.File{{Name: "tilth", Mode: 0o755, Data: data}},
		scripts,
		common.documents,
		payload.Under("completions", common.completions),
		payload.Under("man/man1", common.manual),
		payload.Under("systemd", units),
		payload.Under("licences", texts(modules)),
	)
	return payload.Under(p.name(s.version), files), nil
}
