package runner

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tilth-dev/tilth/runner/answer"
)

// results are what the reference puts out on sets of data. It runs in a process that loads no candidates, and no
// process that does sees any of them.
type results struct {
	resultsHeader
	// slots are the outputs, set after set.
	slots []byte
	free  func() error
}

// resultsHeader is what is kept beside the outputs.
type resultsHeader struct {
	answer.Workload
	// Seed is the plan's; Reference is the digest of the reference's object.
	Seed      uint64 `json:"seed"`
	Reference string `json:"reference"`
	// Exams is how many of the sets are for examinations, Group how many of these are run together: so many that
	// waking the process does not count for much.
	Exams int `json:"exams"`
	Group int `json:"group"`
}

const (
	// practiceSets are those on which candidates are verified and timed.
	practiceSets = 3
	// Sets for examinations are as many as are run in one, and some at least, since a busy machine lengthens what is
	// timed; there are no more than take some time and memory.
	leastExams    = 4
	mostExams     = 32
	mostExamBytes = 8 << 20
	mostExamTime  = 200 * time.Millisecond
	// What the reference takes less time for is run in groups.
	quick      = time.Millisecond
	quickGroup = 4
)

// nextSet is what the seeds of sets differ by that are run together; see harness/src/judge.c.
const nextSet = 0x9E3779B97F4A7C15

// constants stands for the data that is the same in all sets.
const constants = -1

// seedOf is the seed of a set of data. From none of them those of others are known.
func seedOf(seed uint64, set int) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "tilth data %d %d", seed, set))
	return binary.LittleEndian.Uint64(sum[:])
}

// seed is that of a set. Those of sets that are run together follow the first of them.
func (h *resultsHeader) seed(set int) uint64 {
	within := 0
	if set > practiceSets {
		within = (set - practiceSets) % h.Group
	}
	return seedOf(h.Seed, set-within) + nextSet*uint64(within)
}

// set are the outputs on a set of data; those of examinations come after the others.
func (r *results) set(k int) []byte {
	size := int(r.SlotBytes())
	return r.slots[k*size : (k+1)*size]
}

// Close gives the memory back.
func (r *results) Close() error { return r.free() }

// openResults finds or computes the results of a plan's reference. What cannot be kept costs time later, nothing else.
func openResults(ctx context.Context, p Plan) (*results, error) {
	object, err := os.ReadFile(p.Reference)
	if err != nil {
		return nil, fmt.Errorf("the reference: %w", err)
	}
	sum := sha256.Sum256(object)
	want := resultsHeader{Seed: p.Seed, Reference: hex.EncodeToString(sum[:])}
	if r := readResults(p.ReferenceCache, want); r != nil {
		return r, nil
	}
	r, err := computeResults(ctx, p, want)
	if err == nil && p.ReferenceCache != "" {
		_ = r.keep(p.ReferenceCache)
	}
	return r, err
}

var resultsMagic = []byte("tilth-results 4\n")

// resultsAlign is how a file's parts are aligned: its beginning with the header's length, and the outputs.
const resultsAlign = 64

// keep writes the file so that it appears whole or not at all.
func (r *results) keep(path string) error {
	header, err := json.Marshal(r.resultsHeader)
	if err != nil {
		return err
	}
	text := binary.LittleEndian.AppendUint64(bytes.Clone(resultsMagic), uint64(len(header)))
	text = append(text, header...)
	text = append(text, make([]byte, -len(text)&(resultsAlign-1))...)
	file, err := os.CreateTemp(filepath.Dir(path), ".results-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // fails when it was renamed
	_, err = file.Write(text)
	if err == nil {
		_, err = file.Write(r.slots)
	}
	return cmp.Or(err, file.Close(), os.Rename(file.Name(), path))
}

// readResults are those that are kept in a file; nil when there are none, or others.
func readResults(path string, want resultsHeader) *results {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || info.Size() > mostResultsBytes || info.Size() < resultsAlign {
		return nil
	}
	all, err := unix.Mmap(int(file.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil
	}
	r := &results{free: func() error { return unix.Munmap(all) }}
	if !r.parse(all) || r.Seed != want.Seed || r.Reference != want.Reference {
		_ = r.free() // all of it is mapped
		return nil
	}
	return r
}

// parse reads a file's content.
func (r *results) parse(all []byte) bool {
	text, ok := bytes.CutPrefix(all, resultsMagic)
	if !ok || len(text) < 8 {
		return false
	}
	n, text := binary.LittleEndian.Uint64(text), text[8:]
	if n > uint64(len(text)) || json.Unmarshal(text[:n], &r.resultsHeader) != nil || r.Check() != nil || !r.sound() {
		return false
	}
	begin := (len(resultsMagic) + 8 + int(n) + resultsAlign - 1) / resultsAlign * resultsAlign
	r.slots = all[min(begin, len(all)):]
	return int64(len(r.slots)) == r.SlotBytes()*int64(practiceSets+r.Exams)
}

// sound says whether there are examinations in whole groups.
func (h *resultsHeader) sound() bool {
	return h.Group >= 1 && h.Exams >= h.Group && h.Exams <= mostExams && h.Exams%h.Group == 0
}

// computeResults lets a harness run the reference on each set.
func computeResults(ctx context.Context, p Plan, want resultsHeader) (*results, error) {
	memory, err := answer.NewMemory()
	if err != nil {
		return nil, err
	}
	p.Candidates = nil
	if p.Device != nil {
		p.Threads = runtime.NumCPU() // nothing else of this batch runs on the processor meanwhile
	}
	proc, err := p.start(ctx, p.sandboxed(append(p.common(), "--compute", "1", p.Reference)), memory.File)
	if err != nil {
		return nil, errors.Join(err, memory.Close())
	}
	r := &results{resultsHeader: want, free: memory.Close}
	err = r.compute(proc, p, memory)
	ending := proc.kill()
	if err == nil && ctx.Err() == nil {
		r.slots = memory.Bytes()[:r.SlotBytes()*int64(practiceSets+r.Exams)]
		return r, nil
	}
	_ = memory.Close() // there is another error already
	var infra *infraError
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("measuring: %w", context.Cause(ctx))
	case errors.As(err, &infra):
		return nil, err
	}
	return nil, fmt.Errorf("harness: the reference fails: %w %s", err, ending)
}

// compute has the process run the reference.
func (r *results) compute(proc *process, p Plan, memory *answer.Memory) error {
	limit := p.Limits.Reference
	workload, err := proc.workload(limit)
	if err != nil {
		return err
	}
	if err := workload.Check(); err != nil {
		return &infraError{err.Error()}
	}
	r.Workload = *workload
	size := r.SlotBytes()
	most := int(min(max(mostExamBytes/size, leastExams), mostExams))
	if size*int64(practiceSets+most) > mostResultsBytes {
		return &infraError{fmt.Sprintf("the workload's outputs have %d bytes, %d sets of them are too many", size, practiceSets+most)}
	}
	if err := memory.Grow(size * int64(practiceSets+most)); err != nil {
		return err
	}
	if err := proc.say(word{op: goOn, seed: r.seed(0)}); err != nil {
		return err
	}
	for k := range practiceSets {
		took, err := r.one(proc, k, limit)
		if err != nil {
			return err
		}
		if r.Group = 1; took < quick {
			r.Group = quickGroup
		}
	}
	began := time.Now()
	for r.Exams < most-most%r.Group && (r.Exams < leastExams || r.Exams%r.Group != 0 || time.Since(began) < mostExamTime) {
		if _, err := r.one(proc, practiceSets+r.Exams, limit); err != nil {
			return err
		}
		r.Exams++
	}
	return nil
}

// one has the reference run on a set of data.
func (r *results) one(proc *process, set int, limit time.Duration) (took time.Duration, err error) {
	began := time.Now()
	err = proc.run(word{op: runSets, seed: r.seed(set), slot: uint64(set), n: 1}, limit)
	return time.Since(began), err
}
