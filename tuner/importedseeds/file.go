package importedseeds

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

	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/internal/filesystem"
	"github.com/tilth-dev/tilth/internal/wire"
)

const (
	format  = "tilth-seeds"
	version = 1
	// maxLine and maxEntries bound a seeds file.
	maxLine    = 64 << 10
	maxEntries = 1 << 16
)

// PerOperator is the number of seeds kept per operator.
const PerOperator = wire.MaxSeeds

// Entry holds the seeds of an operator from one log.
type Entry struct {
	Operator string `json:"operator"`
	// From is the format of the log.
	From string `json:"from"`
	// Anchors lists the anchors of workloads that the operator may be; several if the log is ambiguous.
	Anchors []string `json:"anchors"`
	// Tilings are ordered by the other compiler's measurements, fastest first.
	Tilings []searchspace.Tiling `json:"tilings"`
}

// File holds the seeds of a user.
type File struct {
	entries []Entry
	// at maps anchors to entries; of maps keys to entries.
	at map[string][]int
	of map[string]int
}

// key identifies an entry within a file.
func (e *Entry) key() string { return e.From + " " + strings.Join(e.Anchors, " ") }

type header struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
}

// New merges the entries of logs. Later logs come first.
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

// Entries returns the entries. The caller must not modify them.
func (f *File) Entries() []Entry { return f.entries }

// Path returns the path of the seeds that belong to a records file.
func Path(records string) string { return records + ".seeds" }

// Read reads a seeds file, or returns no seeds if it does not exist.
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

// Parse parses a seeds file.
func Parse(r io.Reader) (*File, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
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
		if err == nil && len(f.entries) == maxEntries {
			err = fmt.Errorf("there are more than %d operators", maxEntries)
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

// Add adds the entries of one log to a file, ahead of existing ones, and returns the number of new seeds. It
// locks the file and returns filesystem.ErrLocked while another process writes it.
func Add(path string, entries []Entry) (fresh int, err error) {
	if err := filesystem.MakeFolder(filepath.Dir(path), 0o700); err != nil {
		return 0, fmt.Errorf("write seeds: %w", err)
	}
	lock, err := filesystem.TryLock(path + ".lock")
	switch {
	case errors.Is(err, filesystem.ErrLocked):
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
	if len(f.entries) > maxEntries {
		return 0, fmt.Errorf("write seeds to %s: there are more than %d operators: remove the file, and import fewer logs", path, maxEntries)
	}
	return fresh, filesystem.WriteFile(path, f.write)
}

// add puts an entry ahead of the existing ones of its operator.
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
