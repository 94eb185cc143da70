package records

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/internal/wire"
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Bounds on stored and returned data. Files from before the bounds existed have larger rows, which are cut when read.
const (
	// MaxMessageBytes bounds the message of a failed trial.
	MaxMessageBytes = wire.FailureBytes
	// MaxReasonBytes bounds the reason of a job's state.
	MaxReasonBytes = 2 << 10
	// MaxRecordBytes bounds a returned record, so that it fits a message of a connection or a line of an import.
	MaxRecordBytes = 32 << 20
	// MaxRowBytes bounds a row read from data that another process may have written.
	MaxRowBytes = 64 << 20
	// maxEventBytes bounds a returned event.
	maxEventBytes = 48 << 20
	// maxListedBytes bounds a job in a listing, so that it fits a page.
	maxListedBytes = 1 << 20
	// maxListedTasks bounds the tasks of a job that would exceed maxListedBytes.
	maxListedTasks = 1000
)

// Cut truncates text to at most limit bytes, with a note that it was cut.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	note := fmt.Sprintf(" … (cut, it had %d bytes)", len(text))
	end := limit - len(note)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.TrimRight(text[:max(end, 0)], " ") + note
}

// CheckSize returns an error for a record too large to be returned, else nil.
func CheckSize(r *tilthv1.Record) error {
	n := proto.Size(r)
	if n <= MaxRecordBytes {
		return nil
	}
	return fmt.Errorf("record of candidate %.64q of workload %.64q has %d bytes, more than the limit of %d",
		r.GetMeasurement().GetCandidate().GetDigest(), r.GetWorkloadDigest(), n, MaxRecordBytes)
}

// CutMeasurement truncates the message of a measurement to the stored length.
func CutMeasurement(m *tilthv1.Measurement) {
	if len(m.GetMessage()) > MaxMessageBytes {
		m.Message = Cut(m.GetMessage(), MaxMessageBytes)
	}
}

// CutEvent reduces an event to a size that a connection accepts. Candidates keep at least their digests.
func CutEvent(e *tilthv1.JobEvent) {
	CutMeasurement(e.GetTrial().GetMeasurement())
	if s := e.GetState(); s != nil {
		s.Reason = Cut(s.GetReason(), MaxReasonBytes)
	}
	if proto.Size(e) <= maxEventBytes {
		return
	}
	e.Truncated = true
	for _, c := range append(e.GetProposed().GetCandidates(), e.GetTrial().GetMeasurement().GetCandidate()) {
		if c != nil {
			c.Trace, c.Origin = nil, nil
		}
	}
}

// CutJob truncates the descriptive texts of a job.
func CutJob(row *storev1.JobRow, spec *tilthv1.JobSpec) {
	if job := row.GetJob(); job != nil {
		job.Reason = Cut(job.GetReason(), MaxReasonBytes)
	}
	spec.Name, spec.Owner = Cut(spec.GetName(), MaxNameBytes), Cut(spec.GetOwner(), MaxNameBytes)
	for _, t := range spec.GetTasks() {
		t.Name = Cut(t.GetName(), MaxNameBytes)
	}
	for _, p := range spec.GetRun().GetPackages() {
		p.Name = Cut(p.GetName(), MaxNameBytes)
	}
}

// CutListed reduces a job so that several fit one page.
func CutListed(job *tilthv1.Job) {
	if proto.Size(job) <= maxListedBytes {
		return
	}
	job.Truncated = true
	if t := job.GetSpec().GetTarget(); t != nil {
		t.Descriptor_, t.Machine = nil, nil
	}
	for _, p := range job.GetProgress() {
		p.BestTrace, p.Best, p.Messages = nil, nil, nil
	}
	if proto.Size(job) <= maxListedBytes {
		return
	}
	job.Spec.Tasks = job.Spec.Tasks[:min(maxListedTasks, len(job.Spec.Tasks))]
	job.Progress = job.Progress[:min(maxListedTasks, len(job.Progress))]
	if proto.Size(job) > maxListedBytes {
		job.Spec.Tasks, job.Progress, job.DeadLetters, job.Result = nil, nil, nil, nil
	}
}
