package payload

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

// File is a file or folder in an archive.
type File struct {
	// Name is the path in the archive, without a leading slash.
	Name string
	// Mode holds the permission bits.
	Mode int64
	// Data is nil for a folder.
	Data []byte
	// Folder is set for a folder. Parents of files need not be listed.
	Folder bool
	// Owner is the UID and GID.
	Owner int
}

// Under moves files into a folder.
func Under(folder string, files []File) []File {
	moved := slices.Clone(files)
	for i := range moved {
		moved[i].Name = path.Join(folder, moved[i].Name)
	}
	return moved
}

// Tree adds parent folders to files and sorts them by name. Duplicate names are an error.
func Tree(files []File) ([]File, error) {
	listed := map[string]File{}
	for _, f := range files {
		if f.Name == "" || path.IsAbs(f.Name) || path.Clean(f.Name) != f.Name || f.Name == ".." || len(f.Name) > 2 && f.Name[:3] == "../" {
			return nil, fmt.Errorf("%q is no name for a file of an archive", f.Name)
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
				listed[dir] = File{Name: dir, Mode: 0o755, Folder: true}
			}
		}
	}
	tree := make([]File, 0, len(listed))
	for _, f := range listed {
		tree = append(tree, f)
	}
	slices.SortFunc(tree, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	return tree, nil
}

// Tar writes files and their parent folders as a tar archive. The prefix precedes each name. The prefix "./", as in
// Debian packages, also adds the root folder.
func Tar(w io.Writer, prefix string, files []File, when time.Time) error {
	tree, err := Tree(files)
	if err != nil {
		return err
	}
	if prefix != "" {
		tree = slices.Insert(tree, 0, File{Mode: 0o755, Folder: true})
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

// TarGz returns a compressed tar archive.
func TarGz(prefix string, files []File, when time.Time) ([]byte, error) {
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(Tar(z, prefix, files, when), z.Close()); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

// Gzip compresses one file.
func Gzip(data []byte) []byte {
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
