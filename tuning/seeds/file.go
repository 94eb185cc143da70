package seeds

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/internal/atomicfile"
	"github.com/tilth-dev/tilth/internal/disk"
	"github.com/tilth-dev/tilth/internal/wire"
)

const (
	format  = "tilth-seeds"
	version = 1
	// mostLine and mostEntries bound a file that is read.
	mostLine    = 64 << 10
	mostEntries = 1 << 16
)

// PerOperator is how many seeds of an operator are kept.
const PerOperator = wire.MostSeeds

// Entry is what one log says of an operator.
type Entry struct {
	Operator string `json:"operator"`
	// From is the format of the log.
	From string `json:"from"`
	// Anchors are those of the workloads that the operator may be: several where the log leaves something open.
	Anchors []string `json:"anchors"`
	// Tilings are the fastest first, as the other compiler measured them.
	Tilings []space.Tiling `json:"tilings"`
}

// File is the seeds of a user.
type File struct {
	entries []Entry
	// at are the entries of an anchor, and of is that of a key.
	at map[string][]int
	of map[string]int
}

// key tells entries of a file apart.
func (e *Entry) key() string { return e.From + " " + strings.Join(e.Anchors, " ") }

type header struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
}

// New is what Add makes of the entries of logs in an empty file: those of a later log come before those of an earlier
// one.
func New(logs ...[]Entry) *File {
	f := &File{of: map[string]int{}}
	for _, entries := range logs {
		for _, e := range entries {
			f.add(e)
		}
	}
	f.index()
	return f
}

// Entries are what a file has of each operator. They are the file's.
func (f *File) Entries() []Entry { return f.entries }

// Path is where the seeds are that belong to a records file.
func Path(records string) string { return records + ".seeds" }

// Read is the seeds in a file; none where there is no file.
func Read(path string) (*File, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return New(), nil
	}
	if err != nil {
		return nil, fmt.Errorf("read seeds: %w", err)
	}
	defer f.Close()
	seeds, err := Parse(f)
	if err != nil {
		return nil, fmt.Errorf("seeds %s: %w: remove the file, and import the logs again", path, err)
	}
	return seeds, nil
}

// Parse reads what a file of seeds has.
func Parse(r io.Reader) (*File, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, mostLine)
	f := &File{}
	for number := 1; lines.Scan(); number++ {
		if number == 1 {
			var h header
			if json.Unmarshal(lines.Bytes(), &h) != nil || h.Format != format {
				return nil, errors.New("line 1 is not the header of a file of seeds")
			}
			if h.Version != version {
				return nil, fmt.Errorf("it has version %d, and this tilth knows version %d", h.Version, version)
			}
			continue
		}
		e, err := parseEntry(lines.Bytes())
		if err == nil && len(f.entries) == mostEntries {
			err = fmt.Errorf("there are more than %d operators", mostEntries)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		f.entries = append(f.entries, e)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	f.index()
	return f, nil
}

func parseEntry(line []byte) (e Entry, err error) {
	in := json.NewDecoder(bytes.NewReader(line))
	in.DisallowUnknownFields()
	if err := in.Decode(&e); err != nil {
		return e, fmt.Errorf("it is damaged: %w", err)
	}
	if len(e.Anchors) == 0 || len(e.Tilings) == 0 || len(e.Tilings) > PerOperator {
		return e, fmt.Errorf("it is damaged: it has %d anchors and %d tilings", len(e.Anchors), len(e.Tilings))
	}
	for _, t := range e.Tilings {
		if err := t.Valid(); err != nil {
			return e, fmt.Errorf("it is damaged: %w", err)
		}
	}
	return e, nil
}

func (f *File) index() {
	f.at, f.of = map[string][]int{}, map[string]int{}
	for i, e := range f.entries {
		if _, twice := f.of[e.key()]; !twice {
			f.of[e.key()] = i
		}
		for _, a := range e.Anchors {
			f.at[a] = append(f.at[a], i)
		}
	}
}

// Add adds entries to a file, those of one log before what was there, and returns how many seeds are new. Nobody else
// writes the file meanwhile: disk.ErrLocked while another process does.
func Add(path string, entries []Entry) (fresh int, err error) {
	if err := disk.MakeFolder(filepath.Dir(path), 0o700); err != nil {
		return 0, fmt.Errorf("write seeds: %w", err)
	}
	lock, err := disk.TryLock(path + ".lock")
	switch {
	case errors.Is(err, disk.ErrLocked):
		return 0, fmt.Errorf("write seeds to %s: %w, which writes it: try again when that has ended", path, err)
	case err != nil:
		return 0, fmt.Errorf("write seeds: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	f, err := Read(path)
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		fresh += f.add(e)
	}
	if len(f.entries) > mostEntries {
		return 0, fmt.Errorf("write seeds to %s: there are more than %d operators: remove the file, and import fewer logs", path, mostEntries)
	}
	return fresh, atomicfile.Write(path, f.write)
}

// add puts an entry in front of what there is for its operator.
func (f *File) add(e Entry) (fresh int) {
	at, known := f.of[e.key()]
	if !known {
		f.of[e.key()] = len(f.entries)
		f.entries = append(f.entries, e)
		return len(e.Tilings)
	}
	old := f.entries[at].Tilings
	list := slices.Clone(e.Tilings)
	for _, t := range e.Tilings {
		if !slices.Contains(old, t) {
			fresh++
		}
	}
	for _, t := range old {
		if !slices.Contains(list, t) {
			list = append(list, t)
		}
	}
	f.entries[at].Tilings = list[:min(PerOperator, len(list))]
	return fresh
}

func (f *File) write(w io.Writer) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	if err := out.Encode(header{format, version}); err != nil {
		return err
	}
	for _, e := range f.entries {
		if err := out.Encode(e); err != nil {
			return err
		}
	}
	return nil
}
