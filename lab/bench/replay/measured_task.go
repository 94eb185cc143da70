package replay

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/costfeatures"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/costmodel"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/stats"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// MeasuredTask holds the measured candidates of one workload.
type MeasuredTask struct {
	Name string
	// Shape is the workload's shape, which identifies similar tasks.
	Shape   expr.Shape
	Samples []costmodel.Sample
	// Intervals holds the confidence interval of each candidate's median.
	Intervals []stats.Interval
	// Origins holds each candidate's point of the space, as text.
	Origins []string
}

// digest returns the workload's digest, or "" without candidates.
func (t *MeasuredTask) digest() string {
	if len(t.Samples) == 0 {
		return ""
	}
	return t.Samples[0].Task
}

// latencies returns the latencies of the samples.
func (t *MeasuredTask) latencies() []float64 {
	list := make([]float64, len(t.Samples))
	for k, s := range t.Samples {
		list[k] = s.LatencySeconds
	}
	return list
}

// rows returns the features of the samples.
func (t *MeasuredTask) rows() []costfeatures.Row {
	rows := make([]costfeatures.Row, len(t.Samples))
	for k, s := range t.Samples {
		rows[k] = s.Features
	}
	return rows
}

func (t *MeasuredTask) add(origin string, row costfeatures.Row, latency float64, samples []float64, digest string) {
	t.Origins = append(t.Origins, origin)
	t.Samples = append(t.Samples, costmodel.Sample{Features: row, Task: digest, LatencySeconds: latency})
	t.Intervals = append(t.Intervals, stats.MedianInterval(samples))
}

// FromSet converts a recorded set. It skips candidates of a sample that this version's space lacks.
func FromSet(s *Set) (MeasuredTask, error) {
	sp, err := s.Space()
	if err != nil {
		return MeasuredTask{}, err
	}
	by, err := registry.Of(s.Target)
	if err != nil {
		return MeasuredTask{}, fmt.Errorf("%s: %w", s.Task, err)
	}
	t := MeasuredTask{Name: s.Task, Shape: expr.ShapeOf(s.Workload.Text())}
	digest := s.Workload.Digest()
	for k := range s.Points {
		point := &s.Points[k]
		p, ok := sp.Parse(point.Origin)
		var sch *schedule.Schedule
		if ok {
			sch, err = sp.Apply(p)
		}
		switch {
		case (!ok || err != nil) && s.Sampled:
			continue
		case !ok:
			return MeasuredTask{}, fmt.Errorf("%s: candidate %q is not in the space: record the set again", s.Task, point.Origin)
		case err != nil:
			return MeasuredTask{}, fmt.Errorf("%s: %w", s.Task, err)
		}
		t.add(point.Origin, by.Features().Describe(sch, s.Target, sp.Cost(p)), point.LatencySeconds(), point.Samples, digest)
	}
	return t, nil
}

// FromRecords converts the records of a target from an export, ordered by workload digest. It skips records whose
// schedule this version's space lacks.
func FromRecords(r io.Reader, on *target.Target) ([]MeasuredTask, error) {
	from, err := records.NewReader(r)
	if err != nil {
		return nil, err
	}
	by, err := registry.Of(on)
	if err != nil {
		return nil, err
	}
	known := map[string]*recorded{}
	for {
		record, err := from.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if record.Target != on.Fingerprint() {
			continue
		}
		digest := record.WorkloadDigest
		if known[digest] == nil {
			w, err := expr.Parse(string(record.Workload))
			if err != nil {
				return nil, fmt.Errorf("workload %s: %w", humanize.Digest(digest), err)
			}
			known[digest] = &recorded{MeasuredTask{Name: humanize.Digest(digest), Shape: expr.ShapeOf(w.Text())}, by.Space(w, on, schedule.Fast), by.Features()}
		}
		known[digest].add(record)
	}
	var list []MeasuredTask
	for _, digest := range slices.Sorted(maps.Keys(known)) {
		list = append(list, known[digest].Task)
	}
	return list, nil
}

// recorded is a workload with its records.
type recorded struct {
	Task     MeasuredTask
	space    *searchspace.Space
	features backend.Features
}

func (t *recorded) add(r *tilthv1.Record) {
	c := r.Measurement.Candidate
	p, ok := t.space.Parse(string(c.Origin))
	if !ok {
		return
	}
	s, err := t.space.Apply(p)
	if err != nil || !bytes.Equal(s.Trace(), c.Trace) {
		return
	}
	t.Task.add(string(c.Origin), t.features.Describe(s, t.space.Target, t.space.Cost(p)), r.Measurement.LatencySeconds, r.Measurement.SamplesSeconds, r.WorkloadDigest)
}
