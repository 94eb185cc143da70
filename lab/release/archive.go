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
)

// read returns files of the repository under their base names.
func (s *source) read(names ...string) (files []file, err error) {
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(s.root, name))
		if err != nil {
			return nil, err
		}
		files = append(files, file{Name: path.Base(name), Mode: 0o644, Data: data})
	}
	return files, nil
}

// units returns the files of deploy/systemd. Their services start the program in the given folder.
func (s *source) units(programs string) (files []file, err error) {
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
		files = append(files, file{Name: strings.TrimPrefix(name, folder+"/"), Mode: 0o644, Data: data})
		return nil
	})
	return files, err
}

// licenceFiles returns the licence texts of modules, in one folder per module.
func licenceFiles(modules []module) (files []file) {
	for _, m := range modules {
		files = append(files, under(m.Path+"@"+m.Version, m.Texts)...)
	}
	return files
}

// shared holds the files that all archives and packages have in common.
type shared struct {
	documents, completions, manual []file
}

// archive returns the files of an archive.
func (s *source) archive(p program, common shared) ([]file, error) {
	units, err := s.units("/usr/local/bin")
	if err != nil {
		return nil, err
	}
	scripts, err := s.read("deploy/install-runner.sh")
	if err != nil {
		return nil, err
	}
	files := slices.Concat(
		[]file{{Name: "tilth", Mode: 0o755, Data: p.data}},
		scripts,
		common.documents,
		under("completions", common.completions),
		under("man/man1", common.manual),
		under("systemd", units),
		under("licences", licenceFiles(p.modules)),
	)
	return under(p.name(s.version), files), nil
}
