package artifact

import (
	"cmp"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/records"
)

// scan enters the artifacts and the parts of uploads in the folder, in the order of last use. It syncs all folder
// entries, since a killed process may have left some unsynced.
func (s *Store) scan() error {
	var found []*file
	err := s.blobs.List(s.Opening, func(b Blob) error {
		found = append(found, fileOf(b))
		return nil
	})
	if err != nil {
		return err
	}
	err = filepath.WalkDir(s.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == damagedName {
				return filepath.SkipDir
			}
			s.folders[path] = true
			return s.FS.SyncDir(path)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if f := s.found(path, info); f != nil {
			found = append(found, f)
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(found, func(a, b *file) int {
		return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.path, b.path))
	})
	for _, f := range found {
		s.enter(f)
	}
	return nil
}

// found returns the part of an upload in a file of the folder; nil for other files. It removes an upload that was in
// progress when the process ended, since its extent on the disk is unknown.
func (s *Store) found(path string, info fs.FileInfo) *file {
	name := info.Name()
	if digest, owner, number, is := partName(name); is {
		s.number = max(s.number, number)
		return &file{path: path, sizeBytes: info.Size(), used: info.ModTime(), digest: digest, owner: owner, upload: &upload{}}
	}
	if strings.HasSuffix(name, uploadSuffix) || strings.HasSuffix(name, partSuffix) {
		s.remove(path)
	}
	return nil
}

// partName parses the file name of a part.
func partName(name string) (digest, owner string, number uint64, is bool) {
	name, is = strings.CutSuffix(name, partSuffix)
	fields := strings.Split(name, ".")
	if !is || len(fields) != 3 || !records.ValidDigest(fields[0]) {
		return "", "", 0, false
	}
	number, err := strconv.ParseUint(fields[2], 10, 64)
	return fields[0], fields[1], number, err == nil
}

// enter accounts for a file found by scan. Artifacts that were never verified are verified first.
func (s *Store) enter(f *file) {
	if f.upload == nil {
		s.add(f) // a former name has an earlier last use
		s.dropParts(f.digest)
		return
	}
	u := &upload{file: *f}
	u.room = roomOf(u.sizeBytes)
	s.addUpload(u)
	s.release(&u.file)
	if s.files[u.digest] != nil {
		s.drop(&u.file, droppedPart)
	}
}
