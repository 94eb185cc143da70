package codegen

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/modelzoo"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

var (
	updateCorpus = flag.Bool("update-corpus", false,
		"write testdata/corpus.jsonl.gz again, from the built-in models and the ONNX files named as arguments")
	reprintCorpus = flag.Bool("reprint-corpus", false, "write what is printed now of the schedules in testdata/corpus.jsonl.gz")
)

const corpusFile = "testdata/corpus.jsonl.gz"

// corpusEntry is a schedule and the digest of its printed code.
type corpusEntry struct {
	Target   string `json:"target"` // a preset, with corpusThreads
	Workload string `json:"workload"`
	Trace    string `json:"trace"`
	// SHA256 is the digest of the translation unit with the kernel and the functions that pack its constants.
	SHA256 string `json:"sha256"`
}

const corpusThreads = 2

// quickCorpus is the stride of the quick tier through the corpus. It is odd because neighbours are often the same
// task for different targets.
const quickCorpus = 11

var corpusTargets = []string{"x86-64-v3", "x86-64-v4", "arm64"}

// TestCorpusPrintsAsBefore prints the code of schedules of all built-in models' tasks, and of quantised ones, and
// compares it with the recorded corpus. A refactoring must not change the output. After an intended change, rewrite
// the corpus and explain why.
func TestCorpusPrintsAsBefore(t *testing.T) {
	switch {
	case *updateCorpus:
		writeCorpus(t, newCorpus(t))
	case *reprintCorpus:
		writeCorpus(t, readCorpus(t))
	}
	changed := 0
	entries := readCorpus(t)
	step := 1
	if testing.Short() {
		step = quickCorpus
	}
	for k := 0; k < len(entries); k += step {
		e := entries[k]
		source, err := e.print()
		if err != nil {
			t.Fatalf("%s: %v\n%s%s", e.Target, err, e.Workload, e.Trace)
		}
		if sum(source) == e.SHA256 {
			continue
		}
		if changed++; changed <= 3 {
			t.Errorf("prints otherwise than before on %s:\n%s%s\n%s", e.Target, e.Workload, e.Trace, source)
		}
	}
	if changed > 0 {
		t.Errorf("%d of %d print otherwise", changed, len(entries))
	}
	if len(entries) < 500 {
		t.Errorf("the corpus has %d schedules, want 500 at least", len(entries))
	}
}

// print returns the translation unit of the entry's schedule.
func (e corpusEntry) print() (string, error) {
	machine, err := target.Parse(e.Target, corpusThreads)
	if err != nil {
		return "", err
	}
	w, err := expr.Parse(e.Workload)
	if err != nil {
		return "", err
	}
	s, err := schedule.Replay(w, []byte(e.Trace))
	if err != nil {
		return "", err
	}
	u := NewUnit(machine)
	_, err = u.AddWithPacks("k", "k", s)
	return u.Source(), err
}

func sum(source string) string {
	digest := sha256.Sum256([]byte(source))
	return hex.EncodeToString(digest[:])
}

func readCorpus(t *testing.T) (entries []corpusEntry) {
	t.Helper()
	f, err := os.Open(corpusFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for dec := json.NewDecoder(text); ; {
		var e corpusEntry
		err := dec.Decode(&e)
		if errors.Is(err, io.EOF) {
			return entries
		}
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
}

// writeCorpus writes entries with their current output.
func writeCorpus(t *testing.T, entries []corpusEntry) {
	t.Helper()
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	enc := json.NewEncoder(packed)
	for _, e := range entries {
		source, err := e.print()
		if err != nil {
			t.Fatal(err)
		}
		e.SHA256 = sum(source)
		if err := enc.Encode(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(packed.Close(), os.WriteFile(corpusFile, out.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// newCorpus returns schedules of each distinct task on one or two of the targets, alternately the default one and a
// drawn one.
func newCorpus(t *testing.T) (entries []corpusEntry) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 1))
	for i, w := range corpusWorkloads(t) {
		for j, name := range corpusTargets {
			if (i+j)%2 == 0 {
				continue
			}
			entries = append(entries, corpusEntry{Target: name, Workload: w.Text(), Trace: string(corpusTrace(t, w, name, i%4 < 2, rng))})
		}
	}
	return entries
}

// corpusTrace returns the default schedule of a workload on a target, or a drawn one.
func corpusTrace(t *testing.T, w *expr.Workload, name string, drawn bool, rng *rand.Rand) []byte {
	t.Helper()
	machine, err := target.Parse(name, corpusThreads)
	if err != nil {
		t.Fatal(err)
	}
	s := sketch.New(w, machine, schedule.Fast)
	point := s.Default()
	if p, ok := s.Random(rng); ok && drawn {
		point = p
	}
	made, err := s.Apply(point)
	if err != nil {
		t.Fatal(err)
	}
	return made.Trace()
}

// corpusWorkloads returns those of the built-in models, and of the files named as arguments, once each.
func corpusWorkloads(t *testing.T) (list []*expr.Workload) {
	t.Helper()
	var models []*onnx.Model
	for _, name := range modelzoo.Names() {
		m, err := modelzoo.Build(name, modelzoo.Options{})
		if err != nil {
			t.Fatal(err)
		}
		models = append(models, m)
	}
	for _, path := range flag.Args() {
		m, err := onnx.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		models = append(models, m)
	}
	seen := map[string]bool{}
	for _, m := range models {
		p, err := frontend.Import(m, frontend.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range p.Tasks {
			if text := task.Workload.Text(); !seen[text] {
				seen[text] = true
				list = append(list, task.Workload)
			}
		}
	}
	return list
}
