// This file implements lock files. A lock file stores the schedule of each task of a model, which makes compilations
// reproducible regardless of later records.

package bestschedule

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/internal/filesystem"
)

const (
	// version is the version of the format. Version 1, which has no records, can be read, too.
	version = 2
	// maxBytes bounds a lock file; a schedule takes about a kilobyte.
	maxBytes = 64 << 20
)

// LockFile is the content of a lock file: schedules by target fingerprint and workload digest, so that models and
// machines can share a file.
type LockFile struct {
	Version int                             `json:"version"`
	Targets map[string]map[string]LockEntry `json:"targets"`
}

// LockEntry is the schedule of a workload.
type LockEntry struct {
	// Task is the name of the task, for people.
	Task string `json:"task"`
	// Origin, LatencySeconds and RelativeError are those of the choice, for the package's manifest.
	Origin         string  `json:"origin"`
	LatencySeconds float64 `json:"latency_s,omitempty"`
	RelativeError  float64 `json:"relative_error,omitempty"`
	// Record is the record of the schedule, if any.
	Record *aot.Record `json:"record,omitempty"`
	Trace  string      `json:"trace"`
}

// ReadLock reads a lock file, or returns an empty lock if it does not exist.
func ReadLock(path string) (*LockFile, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &LockFile{Version: version, Targets: map[string]map[string]LockEntry{}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read lock: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read lock %s: %w", path, err)
	}
	if len(text) > maxBytes {
		return nil, fmt.Errorf("lock %s has more than %d MiB: it is none that tilth compile wrote", path, maxBytes>>20)
	}
	l, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w; restore it, or remove it to choose schedules again", path, err)
	}
	return l, nil
}

func parse(text []byte) (*LockFile, error) {
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	var l LockFile
	if err := in.Decode(&l); err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("it is damaged: something follows its end")
	}
	if l.Version < 1 || l.Version > version {
		return nil, fmt.Errorf("it has version %d, and this tilth knows versions 1 to %d", l.Version, version)
	}
	l.Version = version // the version to write
	if l.Targets == nil {
		l.Targets = map[string]map[string]LockEntry{}
	}
	return &l, nil
}

// Write writes the lock atomically. Equal locks give equal files.
func (l *LockFile) Write(path string) error {
	return filesystem.WriteFile(path, func(w io.Writer) error {
		out := json.NewEncoder(w)
		out.SetEscapeHTML(false)
		out.SetIndent("", " ")
		return out.Encode(l)
	})
}

// Apply replaces the choices of tasks that are in the lock for a target and adds the others to it; added is
// their number. It returns an error if a schedule does not fit its task or needs a higher numerics level.
func (l *LockFile) Apply(target string, tasks []program.Task, numerics schedule.Numerics, choices []aot.Choice) (added int, err error) {
	entries := l.Targets[target]
	if entries == nil {
		entries = map[string]LockEntry{}
		l.Targets[target] = entries
	}
	for k, task := range tasks {
		digest := task.Workload.Digest()
		e, locked := entries[digest]
		if !locked {
			c := choices[k]
			entries[digest] = LockEntry{Task: task.Name, Origin: c.Origin, LatencySeconds: c.LatencySeconds, RelativeError: c.RelativeError, Record: c.Record, Trace: string(c.Trace)}
			added++
			continue
		}
		if choices[k], err = e.choice(task, numerics); err != nil {
			return 0, err
		}
	}
	return added, nil
}

// Has reports whether the lock contains all tasks for a target.
func (l *LockFile) Has(target string, tasks []program.Task) bool {
	for _, task := range tasks {
		if _, locked := l.Targets[target][task.Workload.Digest()]; !locked {
			return false
		}
	}
	return true
}

// choice returns the entry as a task's choice.
func (e LockEntry) choice(task program.Task, numerics schedule.Numerics) (aot.Choice, error) {
	s, err := schedule.Replay(task.Workload, []byte(e.Trace))
	if err != nil {
		return aot.Choice{}, fmt.Errorf("the locked schedule of %s does not fit it: %w; remove its entry to choose one again", task.Name, err)
	}
	if s.Numerics() > numerics {
		return aot.Choice{}, fmt.Errorf("the locked schedule of %s needs --numerics %v: give that, or remove its entry to have one chosen for %v",
			task.Name, s.Numerics(), numerics)
	}
	return aot.Choice{Origin: e.Origin, LatencySeconds: e.LatencySeconds, RelativeError: e.RelativeError, Record: e.Record, Trace: []byte(e.Trace)}, nil
}
