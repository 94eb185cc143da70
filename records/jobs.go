package records

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/internal/wire"
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// OpenJob is the stored state that a tracker needs to continue an open job.
type OpenJob struct {
	ID       string
	Row      *storev1.JobRow
	Spec     *tilthv1.JobSpec
	Progress []*tilthv1.TaskProgress
	// LastSequence is the sequence number of the job's last event.
	LastSequence uint64
	// Damage describes unreadable data, in which case other fields may be missing; nil without damage.
	Damage error
}

// OpenBatch is an open batch with its candidates.
type OpenBatch struct {
	ID         string
	Row        *storev1.BatchRow
	Candidates []*tilthv1.Candidate
	// PredictedSeconds is from the batch's tilthv1.BatchProposed.
	PredictedSeconds []float32
	// Damage describes unreadable data, in which case other fields may be missing; nil without damage.
	Damage error
}

// Take copies the candidates and predictions of a proposal.
func (b *OpenBatch) Take(p *tilthv1.BatchProposed) {
	b.Candidates, b.PredictedSeconds = p.GetCandidates(), p.GetPredictedSeconds()
}

// JobQuery selects a page of jobs.
type JobQuery struct {
	// States selects jobs by state; none selects all.
	States []tilthv1.JobState
	// Sees selects jobs by owner; nil selects all. Skipped jobs count only towards MaxSeen, and no page names them.
	Sees func(Owner) bool
	// Before selects jobs older than the one with this id; empty starts at the newest.
	Before string
	// Max and MaxBytes bound the jobs of a page and their encoded size, except for a single larger job.
	Max, MaxBytes int
	// MaxSeen bounds the jobs examined for a page, selected or not; 0 means 20,000.
	MaxSeen int
}

// maxJobsSeen is the default of JobQuery.MaxSeen.
const maxJobsSeen = 20000

// JobPage is a page of jobs under construction. A store examines jobs from the newest to the oldest.
type JobPage struct {
	JobQuery
	Jobs []*tilthv1.Job
	// Next is the mark at which the following page begins, once the page is full.
	Next       string
	seen, size int
}

// Take examines a job. load returns the job, or nil if the query does not select it. Take reports whether the page is
// full, either before or with this job.
func (p *JobPage) Take(id string, load func() (*tilthv1.Job, error)) (full bool, err error) {
	last := p.seen >= cmp.Or(p.MaxSeen, maxJobsSeen)
	if len(p.Jobs) >= p.Max || last && len(p.Jobs) > 0 {
		return true, nil
	}
	p.seen++
	job, err := load()
	switch {
	case err != nil:
		return false, err
	case job != nil:
		if p.size += proto.Size(job); p.size > p.MaxBytes && len(p.Jobs) > 0 {
			return true, nil
		}
		p.Jobs, p.Next = append(p.Jobs, job), id
	case last:
		p.Next = beyond(id)
		return p.Before == "" || p.Next < p.Before, nil // otherwise the page began at this mark
	}
	return false, nil
}

// Selects reports whether the query selects a job by its row. damage is the error of reading the row. ownerOf returns
// the job's owner, for rows that do not have it. An error is that of ownerOf, unless it is damage.
func (q *JobQuery) Selects(row *storev1.JobRow, damage error, ownerOf func() (Owner, error)) (bool, error) {
	if damage == nil && len(q.States) > 0 && !slices.Contains(q.States, row.GetJob().GetState()) {
		return false, nil
	}
	if q.Sees == nil {
		return true, nil
	}
	owner := Owner{Name: row.GetOwner().GetName(), Private: row.GetOwner().GetPrivate()}
	if damage != nil || row.GetOwner() == nil {
		var err error
		if owner, err = ownerOf(); err != nil {
			if IsDamage(err) {
				err = nil
			}
			return true, err
		}
	}
	return q.Sees(owner), nil
}

// IsDamage reports whether an error concerns a single damaged job or batch.
func IsDamage(err error) bool { return errors.Is(err, ErrDamaged) || errors.Is(err, ErrNotFound) }

// Unreadable returns the job to list for one whose rows are damaged.
func Unreadable(id, reason string) *tilthv1.Job {
	return &tilthv1.Job{Id: id, State: tilthv1.JobState_JOB_STATE_FAILED, Reason: reason, Spec: &tilthv1.JobSpec{}}
}

// beyond returns a mark that sorts after all ids with the job's number and before all with greater numbers. It names
// no job.
func beyond(id string) string {
	number, _, _ := strings.Cut(strings.TrimPrefix(id, jobPrefix), "-")
	return jobPrefix + number + "-" + strings.Repeat("z", maxGenerationLetters)
}

// jobPrefix is the prefix of job ids; a number follows.
const jobPrefix = "job-"

// OnlyOpen reports whether the query selects only open jobs.
func (q *JobQuery) OnlyOpen() bool {
	return len(q.States) > 0 && !slices.ContainsFunc(q.States, Final)
}

// Job returns the job as clients see it.
func (j *OpenJob) Job() *tilthv1.Job {
	job := j.Row.GetJob()
	job.Spec, job.Progress = j.Spec, j.Progress
	return job
}

// Listed returns the job as in a listing: without workloads, and without the packages' profiles and manifests.
func (j *OpenJob) Listed() *tilthv1.Job {
	job := j.Job()
	for _, t := range job.GetSpec().GetTasks() {
		t.Workload = nil
	}
	for _, p := range job.GetResult().GetPackages() {
		p.Profile, p.Manifest = nil, nil
	}
	CutListed(job)
	return job
}

// RequestKey returns the key of an owner's request. Owners may choose equal ids. Neither part may contain a zero byte.
func RequestKey(owner, requestID string) []byte {
	return fmt.Appendf(nil, "\x00%s\x00%s", owner, requestID)
}

// Owner is the owner of a job.
type Owner struct {
	Name string
	// Private restricts the job and its records to the owner.
	Private bool
}

// Row returns the owner as stored in a job's row.
func (o Owner) Row() *storev1.JobOwner { return &storev1.JobOwner{Name: o.Name, Private: o.Private} }

// Field numbers of JobSpec.
const (
	ownerField   = 2
	privateField = 11
)

// OwnerOf extracts the owner from an encoded specification, whose fields must be in order. It decodes no other field.
func OwnerOf(spec []byte) (o Owner) {
	for len(spec) > 0 {
		number, kind, n := protowire.ConsumeTag(spec)
		if n < 0 || number > privateField {
			return o
		}
		spec = spec[n:]
		switch {
		case number == ownerField && kind == protowire.BytesType:
			value, _ := protowire.ConsumeBytes(spec)
			o.Name = string(value)
		case number == privateField && kind == protowire.VarintType:
			value, _ := protowire.ConsumeVarint(spec)
			o.Private = value != 0
		}
		if n = protowire.ConsumeFieldValue(number, kind, spec); n < 0 {
			return o
		}
		spec = spec[n:]
	}
	return o
}

// generationLetters is the length of a generation's random name: 30 bits.
const generationLetters = 6

// maxGenerationLetters bounds the length of a given name.
const maxGenerationLetters = 16

// NewGeneration returns a random name for a generation of the store.
func NewGeneration() string { return strings.ToLower(rand.Text()[:generationLetters]) }

// NewGenerationOf returns a random name for a generation of one of several shards. The name identifies the shard; see
// wire.ShardOf.
func NewGenerationOf(shard int) string { return wire.ShardMark(shard) + NewGeneration() }

// IsGeneration reports whether text could name a generation.
func IsGeneration(text string) bool {
	return text != "" && len(text) <= maxGenerationLetters && strings.Trim(text, wire.GenerationLetters) == ""
}
