package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"time"
)

// file is a file or folder in an archive.
type file struct {
	// Name is the path in the archive, without a leading slash.
	Name string
	// Mode holds the permission bits.
	Mode int64
	Data []byte
	// Folder marks a folder. Parent folders need no entry.
	Folder bool
	// Owner is both the UID and the GID.
	Owner int
}

// under returns copies of files, moved into a folder.
func under(folder string, files []file) []file {
	moved := slices.Clone(files)
	for i := range moved {
		moved[i].Name = path.Join(folder, moved[i].Name)
	}
	return moved
}

// withFolders returns files and their parent folders, sorted by name. It returns an error for duplicate names and
// names that leave the archive.
func withFolders(files []file) ([]file, error) {
	listed := map[string]file{}
	for _, f := range files {
		if f.Name == "" || path.IsAbs(f.Name) || path.Clean(f.Name) != f.Name || f.Name == ".." || len(f.Name) > 2 && f.Name[:3] == "../" {
			return nil, fmt.Errorf("%q is not a name for a file of an archive", f.Name)
		}
		if _, twice := listed[f.Name]; twice {
			return nil, fmt.Errorf("two files are named %s", f.Name)
		}
		listed[f.Name] = f
	}
	for _, f := range files {
		for dir := path.Dir(f.Name); dir != "."; dir = path.Dir(dir) {
			if above, is := listed[dir]; is && !above.Folder {
				return nil, fmt.Errorf("%s is a file, and the folder of %s", dir, f.Name)
			} else if !is {
				listed[dir] = file{Name: dir, Mode: 0o755, Folder: true}
			}
		}
	}
	tree := make([]file, 0, len(listed))
	for _, f := range listed {
		tree = append(tree, f)
	}
	slices.SortFunc(tree, func(a, b file) int { return cmp.Compare(a.Name, b.Name) })
	return tree, nil
}

// writeTar writes files and their parent folders as a tar archive, all with the same time. The order of the files does
// not affect the result. The prefix precedes each name. A prefix such as "./", which Debian packages use, also adds an
// entry for the root folder.
func writeTar(w io.Writer, prefix string, files []file, when time.Time) error {
	tree, err := withFolders(files)
	if err != nil {
		return err
	}
	if prefix != "" {
		tree = slices.Insert(tree, 0, file{Mode: 0o755, Folder: true})
	}
	t := tar.NewWriter(w)
	for _, f := range tree {
		h := &tar.Header{
			Typeflag: tar.TypeReg, Name: prefix + f.Name, Mode: f.Mode, Size: int64(len(f.Data)),
			Uid: f.Owner, Gid: f.Owner, ModTime: when.UTC().Truncate(time.Second), Format: tar.FormatGNU,
		}
		if f.Folder {
			h.Typeflag = tar.TypeDir
			if f.Name != "" {
				h.Name += "/"
			}
		}
		if err := t.WriteHeader(h); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		if _, err := t.Write(f.Data); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return t.Close()
}

// tarGz returns a gzip-compressed tar archive; see writeTar.
func tarGz(prefix string, files []file, when time.Time) ([]byte, error) {
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(writeTar(z, prefix, files, when), z.Close()); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

// gzipped returns data in gzip format.
func gzipped(data []byte) []byte {
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err == nil {
		_, err = z.Write(data)
	}
	if err = errors.Join(err, z.Close()); err != nil {
		panic(err) // unreachable: the level is valid and a buffer never fails
	}
	return packed.Bytes()
}
