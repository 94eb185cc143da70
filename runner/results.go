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
	"io"
	"math/bits"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/stats"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// results holds the outputs of the reference on sets of data. The reference runs in a process without
// candidates, and no process with candidates sees the results.
type results struct {
	resultsHeader
	// slots holds the outputs, set after set.
	slots []byte
	free  func() error
}

// resultsHeader is stored beside the outputs.
type resultsHeader struct {
	Workload
	// Seed is the plan's seed. Reference is the digest of the reference's object.
	Seed      uint64 `json:"seed"`
	Reference string `json:"reference"`
	// Exams is the number of sets for examinations, and Group the number of these that run together, enough to
	// hide the cost of waking the process. Group is a power of two.
	Exams int `json:"exams"`
	Group int `json:"group"`
}

const (
	// practiceSets is the number of sets on which candidates are verified and timed.
	practiceSets = 3
	// minExams to maxExamTime bound the number of examination sets, by count, memory and time.
	minExams     = 4
	maxExams     = 1024
	maxExamBytes = 32 << 20
	maxExamTime  = 100 * time.Millisecond
	// quick is the time that a group of a fast reference takes, unless it has a larger share of the sets.
	quick         = 4 * time.Millisecond
	maxGroupShare = 8
)

// nextSet is the difference between the seeds of sets that run together; see cruntime/harness/judge.c.
const nextSet = 0x9E3779B97F4A7C15

// constants is the index of the data shared by all sets.
const constants = -1

// seedOf returns the seed of a set of data. Seeds are unpredictable from each other.
func seedOf(seed uint64, set int) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "tilth data %d %d", seed, set))
	return binary.LittleEndian.Uint64(sum[:])
}

// seed returns the seed of a set. Seeds within a group follow from its first.
func (h *resultsHeader) seed(set int) uint64 {
	within := 0
	if set > practiceSets {
		within = (set - practiceSets) % h.Group
	}
	return seedOf(h.Seed, set-within) + nextSet*uint64(within)
}

// set returns the outputs for a set of data. Those of examinations follow the others.
func (r *results) set(k int) []byte {
	size := int(r.SlotBytes())
	return r.slots[k*size : (k+1)*size]
}

// Close releases the memory.
func (r *results) Close() error { return r.free() }

// openResults reads or computes the results of a plan's reference. A failure to store them only costs time later.
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

var resultsMagic = []byte("tilth-results 5\n")

// resultsAlign is the alignment of a file's parts: the header, with its length, and the outputs.
const resultsAlign = 64

// keep writes the file atomically.
func (r *results) keep(path string) error {
	header, err := json.Marshal(r.resultsHeader)
	if err != nil {
		return err
	}
	text := binary.LittleEndian.AppendUint64(bytes.Clone(resultsMagic), uint64(len(header)))
	text = append(text, header...)
	text = append(text, make([]byte, -len(text)&(resultsAlign-1))...)
	return replaceFile(path, 0o600, io.MultiReader(bytes.NewReader(text), bytes.NewReader(r.slots)))
}

// readResults reads stored results, or returns nil if they are missing or different.
func readResults(path string, want resultsHeader) *results {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || info.Size() > maxResultsBytes || info.Size() < resultsAlign {
		return nil
	}
	all, err := unix.Mmap(int(file.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil
	}
	r := &results{free: func() error { return unix.Munmap(all) }}
	if !r.parse(all) || r.Seed != want.Seed || r.Reference != want.Reference {
		_ = r.free() // the whole file is mapped
		return nil
	}
	return r
}

// parse parses a file's content.
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

// sound reports whether the examination sets form whole groups.
func (h *resultsHeader) sound() bool {
	return h.Group >= 1 && h.Group&(h.Group-1) == 0 && h.Exams >= h.Group && h.Exams <= maxExams && h.Exams%h.Group == 0
}

// computeResults runs the reference in a harness on each set.
func computeResults(ctx context.Context, p Plan, want resultsHeader) (*results, error) {
	memory, err := NewMemory()
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
	_ = memory.Close() // an earlier error is returned
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("measuring: %w", context.Cause(ctx))
	case errors.As(err, new(*infraError)):
		return nil, err
	}
	return nil, fmt.Errorf("harness: the reference fails: %w %s", err, ending)
}

// compute runs the reference in the process.
func (r *results) compute(proc *process, p Plan, memory *Memory) error {
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
	maxCount := int(min(max(maxExamBytes/size, minExams), maxExams))
	if size*int64(practiceSets+maxCount) > maxResultsBytes {
		return &infraError{fmt.Sprintf("the workload's outputs have %d bytes, %d sets of them are too many", size, practiceSets+maxCount)}
	}
	if err := memory.Grow(size * int64(practiceSets+maxCount)); err != nil {
		return err
	}
	if err := proc.send(command{op: cmdContinue, seed: r.seed(0)}); err != nil {
		return err
	}
	for k := range practiceSets {
		took, err := r.one(proc, k, limit)
		if err != nil {
			return err
		}
		group := cmp.Or(p.Limits.group, max(1, min(int(quick/took), maxCount/maxGroupShare)))
		r.Group = 1 << (bits.Len(uint(group)) - 1)
	}
	began := time.Now()
	for r.Exams < maxCount-maxCount%r.Group && (r.Exams < minExams || r.Exams%r.Group != 0 || time.Since(began) < cmp.Or(p.Limits.exams, maxExamTime)) {
		if _, err := r.one(proc, practiceSets+r.Exams, limit); err != nil {
			return err
		}
		r.Exams++
	}
	return nil
}

// one runs the reference on one set of data.
func (r *results) one(proc *process, set int, limit time.Duration) (took time.Duration, err error) {
	began := time.Now()
	err = proc.run(command{op: cmdRunSets, seed: r.seed(set), slot: uint64(set), n: 1}, limit)
	return time.Since(began), err
}

// reportInterval is how long measurements may be held back to be reported together.
const reportInterval = time.Second

// batchReport collects a batch's measurements until they are reported.
type batchReport struct {
	handler *Handler
	lease   *tilthv1.LeaseToken
	// open holds the candidates without an outcome, by digest.
	open    map[string]*tilthv1.Candidate
	pending *tilthv1.ReportMeasurementsRequest
	flushed time.Time
}

func newSheet(h *Handler, lease *tilthv1.LeaseToken, batch *tilthv1.MeasureWork) *batchReport {
	s := &batchReport{handler: h, lease: lease, open: map[string]*tilthv1.Candidate{}, flushed: time.Now()}
	for _, c := range batch.GetCandidates() {
		s.open[c.GetDigest()] = c
	}
	s.pending = &tilthv1.ReportMeasurementsRequest{Lease: lease}
	return s
}

// reportError is a failure to report, as opposed to a failure to measure.
type reportError struct{ cause error }

func (e *reportError) Error() string { return e.cause.Error() }

// measure runs a plan for the batch's candidates and ignores reports of other candidates.
func (s *batchReport) measure(ctx context.Context, plan Plan) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := Measure(ctx, plan, func(o Outcome) {
		s.add(o)
		if time.Since(s.flushed) < reportInterval {
			return
		}
		if err := s.flush(ctx); err != nil {
			cancel(&reportError{err})
		}
	})
	if failed := context.Cause(ctx); failed != nil {
		return failed
	}
	return err
}

func (s *batchReport) add(o Outcome) {
	candidate, ok := s.open[o.Kernel]
	if !ok {
		return
	}
	delete(s.open, o.Kernel)
	m := &tilthv1.Measurement{Candidate: candidate, Error: o.Error, Message: agent.FailureMessage(o.Message), SamplesSeconds: o.Samples,
		LatencySeconds: stats.Of(o.Samples).Median, Interval: interval(o.Samples), RelativeError: o.RelativeError, RunSeconds: o.RunSeconds, EnergyJoules: o.EnergyJoules,
		CalibrationRatio: o.CalibrationRatio, Remeasured: o.Remeasured, Device: s.handler.Device, At: timestamppb.Now()}
	s.pending.Measurements = append(s.pending.Measurements, m)
}

// interval returns the confidence interval of the samples' median, or nil.
func interval(samples []float64) *tilthv1.Interval {
	if len(samples) == 0 {
		return nil
	}
	i := stats.MedianInterval(samples)
	return &tilthv1.Interval{LowSeconds: i.Low, HighSeconds: i.High, Level: i.Level}
}

// infra marks the attempt as failed for the candidates without an outcome.
func (s *batchReport) infra(err error) {
	s.pending.InfraError = agent.FailureClass(err, tilthv1.ErrorClass_ERROR_CLASS_DEVICE_INFRA)
	s.pending.InfraMessage = agent.FailureMessage(err.Error())
}

// flush reports the collected measurements, if any.
func (s *batchReport) flush(ctx context.Context) error {
	if len(s.pending.GetMeasurements()) == 0 && s.pending.GetInfraError() == 0 {
		return nil
	}
	if err := s.handler.Report(ctx, s.pending); err != nil {
		return err
	}
	s.pending = &tilthv1.ReportMeasurementsRequest{Lease: s.lease}
	s.flushed = time.Now()
	return nil
}
