package record

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/tilth-dev/tilth/builder"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/sandbox"
	"github.com/tilth-dev/tilth/lab/bench/replay"
	"github.com/tilth-dev/tilth/runner"
)

// Recorder records sets of one target.
type Recorder struct {
	Compiler *builder.Compiler
	Target   *target.Target
	Numerics schedule.Numerics
	Limits   runner.Limits
	// Launcher is an optional command prefix for timing, such as chrt -f 20.
	Launcher []string
	// Sandbox isolates harnesses; nil means limits only.
	Sandbox *sandbox.Sandbox
	Lock    Lock
	// Dir is the folder of sets, Scratch that of batches.
	Dir, Scratch string
	// Size bounds the number of candidates in a set.
	Size PartOptions
	// Sample, if not 0, records that many schedules of the whole space instead of all schedules of a part. There is
	// no Pilot and there are no Finalists. Each candidate gets as many samples as its time allows, regardless of its
	// speed.
	Sample int
	// Batch is the number of candidates that are built before they are timed.
	Batch int
	// Pilot is the number of trials of a first search of the whole space. The set includes the values of the fastest.
	Pilot int
	// Finalists is the number of fastest candidates that are remeasured at the end, in turns, for a number of Rounds.
	Finalists, Rounds int
	// Progress reports the progress of a task.
	Progress func(Progress)
}

// Lock separates computing from timing on this machine until release is called. hostlock.Lock separates processes.
type Lock interface {
	Compute(context.Context) (release func(), err error)
	Time(context.Context) (release func(), err error)
}

// Progress reports the progress of a task.
type Progress struct {
	Task string
	// Measured counts candidates with an outcome, Failed those of them that failed.
	Measured, Failed, Candidates int
	// Best is the lowest latency so far in seconds, or 0.
	Best float64
}

// Record records the set of a task, or resumes it, unless it exists. It returns the set's file.
func (r *Recorder) Record(ctx context.Context, t Task) (string, error) {
	path := filepath.Join(r.Dir, r.fileName(t)+replay.Suffix)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	if err := r.record(ctx, t, path); err != nil {
		return "", fmt.Errorf("recording %s: %w", t.Name, err)
	}
	return path, nil
}

func (r *Recorder) record(ctx context.Context, t Task, path string) error {
	by, err := registry.Of(r.Target)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(r.Scratch, "record-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	m := &measurer{Recorder: r, device: by.Device(r.Target), workload: t.Workload, dir: dir}
	j, err := openJournal(strings.TrimSuffix(path, replay.Suffix) + ".partial.jsonl")
	if err != nil {
		return err
	}
	defer j.close()
	if j.header == nil {
		header, err := r.header(ctx, t, m)
		if err != nil {
			return err
		}
		if err := j.begin(header); err != nil {
			return err
		}
	}
	set, err := r.measureAll(ctx, m, j)
	if err != nil {
		return err
	}
	if r.Sample == 0 {
		if err := r.again(ctx, m, set); err != nil {
			return err
		}
	}
	if err := replay.Write(path, set); err != nil {
		return err
	}
	return j.remove()
}

// header chooses the part of the space.
func (r *Recorder) header(ctx context.Context, t Task, m *measurer) (*replay.Header, error) {
	h := &replay.Header{Task: t.Name, Model: t.Model, Workload: t.Workload, Target: r.Target, Numerics: r.Numerics, Sampled: r.Sample > 0}
	if h.Sampled {
		return h, nil
	}
	whole, err := h.Space()
	if err != nil {
		return nil, err
	}
	size := r.Size
	if size.Measured, err = m.pilot(ctx, whole, r.Pilot); err != nil {
		return nil, err
	}
	h.Values = Part(whole, size)
	return h, nil
}

// measureAll measures the candidates that the journal lacks, in random order, so that a drifting machine affects all
// values of a knob alike.
func (r *Recorder) measureAll(ctx context.Context, m *measurer, j *journal) (*replay.Set, error) {
	s, err := j.header.Space()
	if err != nil {
		return nil, err
	}
	set := &replay.Set{Header: *j.header}
	var open []replay.Candidate
	candidates := r.candidates(s)
	for _, c := range candidates {
		if p, ok := j.known[c.Origin]; ok {
			set.Points = append(set.Points, p)
			m.note(&p)
		} else {
			open = append(open, c)
		}
	}
	rand.New(rand.NewPCG(1, 3)).Shuffle(len(open), func(a, b int) { open[a], open[b] = open[b], open[a] })
	for len(open) > 0 {
		n := min(r.Batch, len(open))
		points, err := m.measure(ctx, open[:n])
		if err != nil {
			return nil, err
		}
		if err := j.add(points); err != nil {
			return nil, err
		}
		set.Points, open = append(set.Points, points...), open[n:]
		r.Progress(progressOf(set, len(candidates)))
	}
	return set, nil
}

func (r *Recorder) candidates(s *space.Space) []replay.Candidate {
	if r.Sample > 0 {
		return Sample(s, r.Sample)
	}
	return replay.Candidates(s, 0)
}

func progressOf(set *replay.Set, candidates int) Progress {
	p := Progress{Task: set.Task, Measured: len(set.Points), Candidates: candidates, Best: set.Best()}
	for k := range set.Points {
		if set.Points[k].Error != "" {
			p.Failed++
		}
	}
	return p
}

// fileName returns the file name of a task's set without the suffix. Names of samples include the model, because
// different models reuse task names.
func (r *Recorder) fileName(t Task) string {
	name := fileName(t.Name)
	if r.Sample > 0 {
		name = name[:min(len(name), longestName)] + "." + t.Workload.Digest()[:8]
	}
	return name
}

// longestName bounds the task's name in a sample's file name.
const longestName = 120

// fileName converts a task's name to a file name. Characters other than letters, digits and those of shapes become
// underscores.
func fileName(task string) string {
	clean := strings.Map(func(c rune) rune {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '+', c == '-':
			return c
		}
		return '_'
	}, strings.ReplaceAll(task, " -> ", "-"))
	return clean
}
