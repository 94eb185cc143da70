package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/progress"
)

// Bounds on the cached state of viewed jobs, and on what a page reads.
const (
	// maxFollowed bounds the jobs with cached summaries.
	maxFollowed = 16
	// maxPoints bounds the trials kept for a job. Beyond it, all improvements and a sample of the others remain.
	maxPoints = 20_000
	// maxRead bounds the events that one page reads. The next page continues.
	maxRead = 50_000
	// maxEventLines bounds the events that are shown.
	maxEventLines = 40
)

// follows caches summaries of jobs' events, so that a page reads only new events.
type follows struct {
	mu    sync.Mutex
	byJob map[string]*follow
	uses  uint64
}

// follow is the summary of a job's events. Holding turn grants exclusive access; waiters may give up.
type follow struct {
	turn   chan struct{}
	used   uint64 // guarded by follows.mu
	next   uint64 // sequence number of the next event
	last   *timestamppb.Timestamp
	tally  *progress.Tally
	points []point
	// every is the sampling interval of trials that are no improvement; others counts those since the last sample.
	every, others int
	told          []eventLine
	forms         forms
	// behind is set if events were left for the next page.
	behind bool
}

// point is a trial.
type point struct {
	task, trial   uint32
	elapsed       float64 // seconds since the job was created
	latency, best float64 // seconds; latency is 0 on failure
	predicted     float32 // seconds; 0 without a prediction
	class         tilthv1.ErrorClass
	algorithm     string
	digest        string
	device        string
	knobs         knobs
}

// eventLine is an event formatted as text.
type eventLine struct {
	At   *timestamppb.Timestamp
	Text string
}

// of returns the summary of a job, evicting the least recently used if necessary.
func (f *follows) of(job *tilthv1.Job) *follow {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.byJob[job.GetId()]
	if one == nil {
		if len(f.byJob) >= maxFollowed {
			delete(f.byJob, slices.MinFunc(slices.Collect(maps.Keys(f.byJob)), func(a, b string) int {
				return cmp.Compare(f.byJob[a].used, f.byJob[b].used)
			}))
		}
		one = &follow{turn: make(chan struct{}, 1)}
		f.byJob[job.GetId()] = one
	}
	f.uses++
	one.used = f.uses
	return one
}

// view reads a job's new events and calls look with the summary. look must not retain it.
func (s *Site) view(ctx context.Context, job *tilthv1.Job, look func(*follow)) error {
	f := s.follows.of(job)
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done(): // another page may be reading many events
		return status.FromContextError(ctx.Err()).Err()
	}
	if f.tally == nil || len(f.tally.Tasks) < len(job.GetSpec().GetTasks()) { // the model was read in the meantime
		f.reset(job)
	}
	err := s.read(ctx, f, job)
	if status.Code(err) == codes.FailedPrecondition { // the records were restored from a backup
		f.reset(job)
		err = s.read(ctx, f, job)
	}
	if err != nil {
		return err
	}
	look(f)
	return nil
}

func (f *follow) reset(job *tilthv1.Job) {
	var references []progress.Reference
	for _, t := range job.GetSpec().GetTasks() {
		references = append(references, progress.Reference{
			DefaultDigest: t.GetDefaultDigest(), PeakSeconds: t.GetPeakSeconds(), ByteSeconds: t.GetByteSeconds(),
		})
	}
	f.tally, f.next, f.last, f.points, f.told, f.forms = progress.NewTally(job, references), 1, nil, nil, nil, nil
	f.every, f.others = 1, 0
}

// read adds new stored events to the summary.
func (s *Site) read(ctx context.Context, f *follow, job *tilthv1.Job) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := s.jobs.WatchJob(ctx, &tilthv1.WatchJobRequest{
		JobId: job.GetId(), FromSequence: f.next, After: f.last, Several: true, Status: true,
	})
	if err != nil {
		return err
	}
	f.behind = false
	for n := 0; ; {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if message.GetStatus() != nil { // the stored events are all read
			return nil
		}
		for _, e := range append([]*tilthv1.JobEvent{message.GetEvent()}, message.GetMore()...) {
			f.add(e)
			n++
		}
		if n >= maxRead {
			f.behind = true
			return nil
		}
	}
}

// add adds the next event.
func (f *follow) add(e *tilthv1.JobEvent) {
	f.next, f.last = e.GetSequence()+1, e.GetAt()
	f.tally.Add(e)
	if len(f.tally.Curve) > maxPoints {
		f.tally.Curve = slices.Clip(everyOther(f.tally.Curve))
	}
	if t := e.GetTrial(); t != nil && int(t.GetTaskIndex()) < len(f.tally.Tasks) {
		m := t.GetMeasurement()
		f.keep(point{
			task: t.GetTaskIndex(), trial: m.GetCandidate().GetTrial(), elapsed: f.tally.Elapsed().Seconds(),
			latency: m.GetLatencySeconds(), best: t.GetBestSeconds(), predicted: t.GetPredictedSeconds(), class: m.GetError(),
			algorithm: algorithm(m.GetCandidate()), digest: humanize.Digest(m.GetCandidate().GetDigest()), device: m.GetDevice(),
			knobs: f.forms.read(string(m.GetCandidate().GetOrigin())),
		})
	}
	if text := f.describe(e); text != "" {
		if f.told = append(f.told, eventLine{e.GetAt(), text}); len(f.told) > maxEventLines {
			f.told = slices.Clone(f.told[1:])
		}
	}
}

// keep adds a trial to the sample. Samples are spread evenly over all trials.
func (f *follow) keep(p point) {
	if !p.improves() {
		if f.others++; f.others < f.every {
			return
		}
		f.others = 0
	}
	if f.points = append(f.points, p); len(f.points) > maxPoints {
		f.points = slices.Clip(everyOtherPoint(f.points))
		f.every = 2 * max(f.every, 1)
	}
}

// improves reports whether the trial was its task's best when recorded.
func (p point) improves() bool { return p.latency > 0 && p.latency == p.best }

// everyOtherPoint keeps improvements and every other of the remaining points. If improvements alone are too many, it
// drops every other of all.
func everyOtherPoint(all []point) []point {
	n, others := 0, 0
	for _, p := range all {
		if !p.improves() {
			if others++; others%2 == 1 {
				continue
			}
		}
		all[n] = p
		n++
	}
	if n > maxPoints*3/4 {
		return everyOther(all[:n])
	}
	return all[:n]
}

// everyOther keeps every other element and the last one, in place.
func everyOther[T any](all []T) []T {
	n := 0
	for i := range all {
		if i%2 == 0 || i == len(all)-1 {
			all[n] = all[i]
			n++
		}
	}
	return all[:n]
}

// tiles matches the name of a variant of Winograd's algorithm: tile, filter and stride. The last two are the task's.
var tiles = regexp.MustCompile(`F\((\w+),\w+\)(/\w+)?`)

// algorithm describes the sums that a candidate computes. Candidates of older versions have no names of algorithms.
func algorithm(c *tilthv1.Candidate) string {
	level := cmp.Or(c.GetNumerics(), "strict")
	switch names := c.GetAlgorithms(); {
	case len(names) > 0:
		return tiles.ReplaceAllString(strings.Join(names, ", "), "Winograd $1")
	case level == "strict":
		return "direct"
	}
	if m := c.GetMultiplications(); m > 0 && m < 1 {
		return fmt.Sprintf("%s, %.0f %% of multiplications", level, 100*m)
	}
	return level
}

// describe describes an event, or returns "" if it is not worth a line.
func (f *follow) describe(e *tilthv1.JobEvent) string {
	task := func(i uint32) string {
		if int(i) < len(f.tally.Tasks) {
			return f.tally.Tasks[i].Name
		}
		return fmt.Sprintf("task %d", i)
	}
	switch e := e.GetEvent().(type) {
	case *tilthv1.JobEvent_State:
		return withReason("the job is "+wire.JobState(e.State.GetState()), e.State.GetReason())
	case *tilthv1.JobEvent_DeadLetter:
		return withReason(fmt.Sprintf("a batch of %s was given up (%s)", task(e.DeadLetter.GetTaskIndex()), wire.ErrorClass(e.DeadLetter.GetError())),
			e.DeadLetter.GetMessage())
	case *tilthv1.JobEvent_Retried:
		return "a batch of " + task(e.Retried.GetTaskIndex()) + " is tried again"
	case *tilthv1.JobEvent_Suspected:
		return withReason("the best of "+task(e.Suspected.GetTaskIndex())+" is measured again", e.Suspected.GetReason())
	case *tilthv1.JobEvent_Trial:
		m := e.Trial.GetMeasurement()
		if m.GetLatencySeconds() > 0 && m.GetLatencySeconds() == e.Trial.GetBestSeconds() {
			return fmt.Sprintf("%s: %s, the best so far (trial %d)", task(e.Trial.GetTaskIndex()), humanize.Seconds(m.GetLatencySeconds()), m.GetCandidate().GetTrial())
		}
	}
	return ""
}

func withReason(what, why string) string {
	if why == "" {
		return what
	}
	return what + ": " + why
}

// Bounds on stored knobs: per candidate, and distinct sets of knob names per job.
const (
	maxKnobs = 64
	maxForms = 64
	// maxNeighbours bounds the neighbours that a page shows.
	maxNeighbours = 40
)

// forms are the distinct lists of knob names in a job; they differ by algorithm. Candidates store only values, since
// tens of thousands of them are kept.
type forms [][]string

// knobs holds a candidate's values for a form, numbered from 1; form 0 means unknown.
type knobs struct {
	form   int
	values []int32
}

// read parses a candidate's origin, knob=value pairs separated by spaces. Any other text yields unknown knobs.
func (f *forms) read(text string) knobs {
	fields := strings.Fields(text)
	if len(fields) == 0 || len(fields) > maxKnobs {
		return knobs{}
	}
	names, values := make([]string, len(fields)), make([]int32, len(fields))
	for i, field := range fields {
		name, number, is := strings.Cut(field, "=")
		v, err := strconv.ParseInt(number, 10, 32)
		if !is || err != nil {
			return knobs{}
		}
		names[i], values[i] = name, int32(v)
	}
	i := slices.IndexFunc(*f, func(known []string) bool { return slices.Equal(known, names) })
	if i < 0 {
		if len(*f) == maxForms {
			return knobs{}
		}
		i = len(*f)
		for k, name := range names {
			names[k] = strings.Clone(name) // do not retain the whole text
		}
		*f = append(*f, names)
	}
	return knobs{i + 1, values}
}

// knob is a knob of the best candidate.
type knob struct {
	Name  string
	Value int32
}

// show pairs values with their names.
func (f forms) show(k knobs) (out []knob) {
	for i, v := range k.values {
		out = append(out, knob{f[k.form-1][i], v})
	}
	return out
}

// neighbour is a trial that differs from the best in one knob.
type neighbour struct {
	Trial    uint32
	Knob     string
	From, To int32
	// Seconds is its latency; 0 on failure, with the error class in Failed.
	Seconds float64
	Failed  string
}

// neighbours returns the task's trials that differ from of in one knob, by knob, fastest first.
func (f *follow) neighbours(task int, of knobs) (out []neighbour) {
	if of.form == 0 {
		return nil
	}
	for _, p := range f.points {
		k, is := differs(of, p.knobs)
		if int(p.task) != task || !is {
			continue
		}
		n := neighbour{Trial: p.trial, Knob: f.forms[of.form-1][k], From: of.values[k], To: p.knobs.values[k], Seconds: p.latency}
		if p.latency == 0 {
			n.Failed = wire.ErrorClass(p.class)
		}
		out = append(out, n)
	}
	slices.SortStableFunc(out, func(a, b neighbour) int {
		return cmp.Or(strings.Compare(a.Knob, b.Knob), strings.Compare(a.Failed, b.Failed), cmp.Compare(a.Seconds, b.Seconds))
	})
	return out[:min(len(out), maxNeighbours)]
}

// differs returns the index of the only differing knob; is reports whether there is exactly one.
func differs(a, b knobs) (at int, is bool) {
	if a.form != b.form {
		return 0, false
	}
	n := 0
	for i := range a.values {
		if a.values[i] != b.values[i] {
			at = i
			n++
		}
	}
	return at, n == 1
}

// knobsOf returns the knobs of a trial, found by task and digest.
func (f *follow) knobsOf(task int, digest string) knobs {
	for _, p := range slices.Backward(f.points) {
		if int(p.task) == task && p.digest == digest && p.knobs.form != 0 {
			return p.knobs
		}
	}
	return knobs{}
}
