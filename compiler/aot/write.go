package aot

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tilth-dev/tilth/internal/filesystem"
)

// write creates the package, after measuring it if Check is set; it appears under its name once it is completely on
// disk.
func (c *compilation) write(l *layout, object []byte) (manifest *Manifest, err error) {
	fill := func(out io.Writer) (*archiveWriter, error) { return c.writeMembers(out, l, object) }
	if c.options.Check != nil {
		checked, err := c.check(l, object)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, checked.remove()) }()
		fill = checked.copy
	}
	var size counter
	err = filesystem.WriteFile(c.options.Output, func(out io.Writer) error {
		w, err := fill(io.MultiWriter(out, &size))
		if err == nil {
			manifest = c.manifest(l)
			err = w.finish(manifest)
		}
		if most := c.options.Limits.PackageBytes; err == nil && most > 0 && int64(size) > most {
			err = fmt.Errorf("it takes %d bytes, and --max-size allows %d: %d are weights, which --weights int8 makes smaller", size, most, l.weightsBytes)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("package: %w", err)
	}
	return manifest, nil
}

// writeMembers writes all members but the manifest, which comes last and contains their checksums.
func (c *compilation) writeMembers(out io.Writer, l *layout, object []byte) (*archiveWriter, error) {
	w := &archiveWriter{tar: tar.NewWriter(out)}
	err := w.addBytes(objectName, object)
	if err == nil {
		err = w.addBytes(headerName, []byte(c.runtime.Interface.Text))
	}
	if err == nil {
		err = w.addNamed(c.options.Prefix)
	}
	if err == nil {
		err = w.add(weightsName, l.weightsBytes, func(out io.Writer) error { return l.writeWeights(out) })
	}
	if err == nil {
		err = w.tar.Flush()
	}
	return w, err
}

// checked is a measured package in a private file, whose manifest lacks the results.
type checked struct {
	dir     string
	members []Member
	// bytes is the length of the package up to its manifest.
	bytes int64
}

func (p *checked) file() string { return filepath.Join(p.dir, "package.tar") }

func (p *checked) remove() error { return os.RemoveAll(p.dir) }

// check writes the package and measures it.
func (c *compilation) check(l *layout, object []byte) (p *checked, err error) {
	dir, err := os.MkdirTemp("", "tilth-check-*")
	if err != nil {
		return nil, err
	}
	p = &checked{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.remove())
		}
	}()
	if err := c.writeUnchecked(p, l, object); err != nil {
		return nil, fmt.Errorf("the package to be checked: %w (TMPDIR names another folder for it)", err)
	}
	m, err := Load(p.file())
	if err != nil {
		return nil, err
	}
	c.accuracy, err = c.options.Check(m)
	return p, errors.Join(err, m.Close())
}

// writeUnchecked writes the package to a file that need not outlive this process.
func (c *compilation) writeUnchecked(p *checked, l *layout, object []byte) error {
	f, err := os.Create(p.file())
	if err != nil {
		return err
	}
	out := bufio.NewWriter(f)
	w, err := c.writeMembers(out, l, object)
	if err = errors.Join(err, out.Flush()); err == nil {
		p.members = w.members
		p.bytes, err = f.Seek(0, io.SeekCurrent)
	}
	if err == nil {
		err = w.finish(c.manifest(l))
	}
	return errors.Join(err, out.Flush(), f.Close())
}

// copy writes all members but the manifest.
func (p *checked) copy(out io.Writer) (*archiveWriter, error) {
	f, err := os.Open(p.file())
	if err != nil {
		return nil, err
	}
	defer f.Close()
	_, err = io.CopyN(out, f, p.bytes)
	return &archiveWriter{tar: tar.NewWriter(out), members: p.members}, err
}
