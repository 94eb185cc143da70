package state

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// TestStateInvariantsHoldForAnyOperations runs farms in which agents join, vanish, fail, repeat calls and report late,
// jobs are paused and cancelled, and devices are cordoned, in random order. After each operation all counters agree
// with the state, and all unfinished work is in exactly one place. Finally every agent works, and every job ends with
// each trial either recorded once or given up.
func TestStateInvariantsHoldForAnyOperations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.submit()
		for _, name := range agents {
			w.join(name)
		}
		w.shift()
		t.Repeat(map[string]func(*rapid.T){
			"":        func(*rapid.T) { w.checkBooks() },
			"submit":  func(*rapid.T) { w.submit() },
			"prepare": func(*rapid.T) { w.prepare() },
			"join":    func(*rapid.T) { w.join(rapid.SampledFrom(agents).Draw(t, "agent")) },
			"lease":   func(*rapid.T) { w.lease() },
			"give up": func(*rapid.T) { w.giveUp() },
			"read":    func(*rapid.T) { w.read(rapid.IntRange(0, 3).Draw(t, "reading")) },
			"propose": func(*rapid.T) { w.propose() },
			"shift":   func(*rapid.T) { w.shift() },
			"build":   func(*rapid.T) { w.build(rapid.IntRange(0, 3).Draw(t, "build")) },
			"measure": func(*rapid.T) { w.measure(rapid.IntRange(0, 3).Draw(t, "measurement")) },
			"return": func(*rapid.T) {
				w.anyHeld(whatever, func(r *lent) { w.do(func(c *Change) { c.ReturnLease(r.GetLease(), "returned") }) })
			},
			"leave": func(*rapid.T) { w.anySession(func(s string) { w.do(func(c *Change) { c.Leave(s) }) }) },
			"time": func(*rapid.T) {
				w.pass(time.Duration(rapid.IntRange(1, 50).Draw(t, "s"))*time.Second, signs(rapid.IntRange(0, 2).Draw(t, "signs")))
			},
			"pause":    func(*rapid.T) { w.anyJob(func(c *Change, id string) { c.Pause(id, "") }) },
			"resume":   func(*rapid.T) { w.anyJob(func(c *Change, id string) { c.Resume(id, "") }) },
			"cancel":   func(*rapid.T) { w.anyJob(func(c *Change, id string) { c.Cancel(id, "") }) },
			"delete":   func(*rapid.T) { w.delete() },
			"drain":    func(*rapid.T) { w.anyDevice(func(c *Change, name string) { _, _ = c.Drain(name, "me", "") }) },
			"uncordon": func(*rapid.T) { w.anyDevice(func(c *Change, name string) { _, _ = c.Uncordon(name, "me", "") }) },
			"damage":   func(*rapid.T) { w.damage() },
		})
		w.behave()
	})
}

// agents lists the agents' names. The first letter is the kind.
var agents = []string{"t1", "t2", "b1", "b2", "r1", "r2", "r3"}

// lent is a granted lease with its work.
type lent = tilthv1.LeaseWorkResponse

// Predicates of the kinds of leases.
func whatever(*lent) bool   { return true }
func reads(r *lent) bool    { return r.GetModel() != nil }
func searches(r *lent) bool { return r.GetSearch() != nil }
func builds(r *lent) bool   { return r.GetBuild() != nil }
func measures(r *lent) bool { return r.GetMeasure() != nil }

// submission returns a random submission out of few requests, and the request's key.
func (w *world) submission() (s *Submission, key string) {
	id, owner := fmt.Sprint(rapid.IntRange(0, 5).Draw(w.T, "request")), rapid.SampledFrom([]string{"ada", "bob"}).Draw(w.T, "owner")
	spec := &tilthv1.JobSpec{
		Name: "model", Owner: owner, Tuner: "grid", Budget: &tilthv1.Budget{Trials: 64},
		Target: &tilthv1.TargetSpec{Fingerprint: "cpu", Toolchain: "clang", DeviceClass: "x86"},
	}
	if rapid.Bool().Draw(w.T, "model") {
		spec.Model = &tilthv1.ModelSpec{File: &tilthv1.ArtifactRef{Digest: "model"}}
		return NewSubmission(id, spec, nil), owner + "/" + id
	}
	spec.Tasks = conv()
	return NewSubmission(id, spec, []*tilthv1.TaskProgress{{}}), owner + "/" + id
}

func conv() []*tilthv1.TaskSpec {
	return []*tilthv1.TaskSpec{{Workload: []byte("conv"), WorkloadDigest: "conv", Weight: 1}}
}

// prepare queries the store for a submission that is made later. The job may be created and end meanwhile.
func (w *world) prepare() {
	s, key := w.submission()
	if err := s.LookUp(w.requested, w.m.EndedCount()); err != nil {
		w.Fatal(err)
	}
	w.prepared[key] = s
}

func (w *world) submit() {
	s, key := w.submission()
	if p := w.prepared[key]; p != nil && rapid.Bool().Draw(w.T, "prepared") {
		s = p
		delete(w.prepared, key)
	}
	w.artifacts.sizes["model"] = 10
	var made *tilthv1.Job
	err := w.apply(func(c *Change) (err error) {
		made, _, err = c.Submit(s)
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	if made != nil {
		if before, is := w.requests[key]; is && before != made.GetId() {
			w.Fatalf("request %s made %s and %s", key, before, made.GetId())
		}
		w.requests[key] = made.GetId()
	}
}

func (w *world) join(name string) {
	spec := &tilthv1.AgentSpec{Name: name}
	switch name[0] {
	case 't':
		spec.Kind, spec.Tuners = tilthv1.AgentKind_AGENT_KIND_TUNER, []string{"grid"}
		if name == "t1" { // the other one is an older version
			spec.Capabilities = []string{"model"}
		}
	case 'b':
		spec.Kind, spec.Toolchains = tilthv1.AgentKind_AGENT_KIND_BUILDER, []string{"clang"}
	default:
		spec.Kind, spec.DeviceClasses = tilthv1.AgentKind_AGENT_KIND_RUNNER, []*tilthv1.DeviceClass{{Name: "x86"}}
	}
	session := fmt.Sprintf("%s at %d, %d", name, w.now.Unix(), len(w.held))
	if w.m.sessions[session] != nil {
		return
	}
	if err := w.apply(func(c *Change) error { _, err := c.Join(spec, session, ""); return err }); err != nil {
		w.Fatal(err)
	}
}

// shift makes all agents request work, and tuners with work propose.
func (w *world) shift() {
	for _, session := range w.sessions() {
		w.leaseTo(session)
	}
	for _, r := range slices.Clone(w.held) {
		if j, is := w.m.lookUp(r.GetLease()).(*job); is && j.reads() {
			w.reportModel(r.GetLease(), 2)
		} else if is {
			w.proposeTo(r.GetLease(), j.proposals)
		}
	}
}

// lease requests work for a random agent, which waits if no work is queued.
func (w *world) lease() { w.anySession(w.leaseTo) }

func (w *world) leaseTo(session string) {
	granted, err := w.m.Lease(session)
	w.carryOut()
	if err != nil {
		w.Fatal(err)
	}
	if granted != nil {
		return
	}
	waiter, err := w.m.Wait(session, "")
	var r *Refusal
	if errors.As(err, &r) && r.Kind == Overloaded {
		return
	}
	w.waiting[waiter] = true
}

// read reports a tuner's outcome: 0 a failure, 1 an unsuitable model, otherwise its tasks.
func (w *world) read(outcome int) {
	w.anyHeld(reads, func(r *lent) { w.reportModel(r.GetLease(), outcome) })
}

func (w *world) reportModel(lease *tilthv1.LeaseToken, outcome int) {
	var reading *Reading
	spec := w.m.ReadBy(lease)
	switch {
	case outcome == 0:
		reading = FailedReading(&tilthv1.ReportModelRequest{Lease: lease, InfraMessage: "no process"})
	case outcome == 1 || spec == nil:
		reading = FailedReading(&tilthv1.ReportModelRequest{Lease: lease, Failure: "no model"})
	default:
		spec = proto.CloneOf(spec)
		spec.Tasks = conv()
		reading = NewReading(lease, spec, []*tilthv1.TaskProgress{{}})
	}
	w.send(func(c *Change) error { _, err := c.ReportModel(reading); return err })
}

func (w *world) propose() {
	w.anyHeld(searches, func(r *lent) {
		if j := w.m.jobs[r.GetSearch().GetJob().GetId()]; j != nil {
			w.proposeTo(r.GetLease(), j.proposals-uint64(rapid.IntRange(0, int(min(j.proposals, 1))).Draw(w.T, "again")))
		}
	})
}

func (w *world) proposeTo(lease *tilthv1.LeaseToken, proposal uint64) {
	var candidates []*tilthv1.Candidate
	for i := range rapid.IntRange(1, 4).Draw(w.T, "candidates") {
		trace := fmt.Sprintf("%s/%d/%d", lease.GetSubject(), proposal, i)
		candidates = append(candidates, &tilthv1.Candidate{Trace: []byte(trace), Digest: trace})
	}
	w.mayBeStale(w.apply(func(c *Change) error {
		_, err := c.Propose(&tilthv1.ProposeBatchRequest{Lease: lease, Proposal: proposal, Candidates: candidates})
		return err
	}))
}

// build reports a builder's outcome: 0 a failure, 1 no object compiles, otherwise all do.
func (w *world) build(outcome int) {
	w.anyHeld(builds, func(r *lent) { w.reportBuild(r.GetLease(), r.GetBuild(), outcome) })
}

func (w *world) reportBuild(lease *tilthv1.LeaseToken, work *tilthv1.BuildWork, outcome int) {
	report := &tilthv1.ReportBuildRequest{Lease: lease}
	class := tilthv1.ErrorClass_ERROR_CLASS_NONE
	switch outcome {
	case 0:
		report.InfraError = tilthv1.ErrorClass_ERROR_CLASS_BUILD_INFRA
	case 1:
		class = tilthv1.ErrorClass_ERROR_CLASS_COMPILE_ERROR
	default:
		w.artifacts.sizes[work.GetBatchId()] = 10
		report.Artifacts = []*tilthv1.ArtifactRef{{Digest: work.GetBatchId()}}
	}
	for _, c := range work.GetCandidates() {
		report.Outcomes = append(report.Outcomes, &tilthv1.BuildOutcome{Candidate: c.GetDigest(), Error: class, BuildSeconds: 0.1})
	}
	w.send(func(c *Change) error { _, err := c.ReportBuild(report); return err })
}

// measure reports a runner's outcome: 0 a failure, 1 the first candidate, otherwise all.
func (w *world) measure(outcome int) {
	w.anyHeld(measures, func(r *lent) { w.reportMeasurements(r.GetLease(), r.GetMeasure(), outcome) })
}

func (w *world) reportMeasurements(lease *tilthv1.LeaseToken, work *tilthv1.MeasureWork, outcome int) {
	report := &tilthv1.ReportMeasurementsRequest{Lease: lease}
	measured := work.GetCandidates()
	switch outcome {
	case 0:
		report.InfraError, measured = tilthv1.ErrorClass_ERROR_CLASS_DEVICE_INFRA, nil
	case 1:
		measured = measured[:1]
	}
	for _, c := range measured {
		report.Measurements = append(report.Measurements, &tilthv1.Measurement{
			Candidate: c, Error: tilthv1.ErrorClass_ERROR_CLASS_NONE, SamplesSeconds: []float64{0.1}, LatencySeconds: 0.1, RunSeconds: 0.5,
		})
	}
	w.send(func(c *Change) error { _, err := c.ReportMeasurements(report); return err })
}

// send sends a report and sometimes repeats it, as after a lost answer.
func (w *world) send(report func(*Change) error) {
	for range rapid.IntRange(1, 2).Draw(w.T, "times") {
		w.mayBeStale(w.apply(report))
	}
}

// damage marks an artifact as lost.
func (w *world) damage() {
	for _, digest := range slices.Sorted(maps.Keys(w.artifacts.sizes)) {
		delete(w.artifacts.sizes, digest)
		w.do(func(c *Change) { c.Damaged(digest) })
		return
	}
}

// mayBeStale fails the test for any refusal except those of lost leases and artifacts.
func (w *world) mayBeStale(err error) {
	var r *Refusal
	if err != nil && !(errors.As(err, &r) && slices.Contains([]RefusalKind{StaleLease, Overloaded, MissingArtifact, Invalid}, r.Kind)) {
		w.Fatal(err)
	}
}

// anyHeld calls do with one of the latest leases of a kind, valid or not.
func (w *world) anyHeld(is func(*lent) bool, do func(*lent)) {
	var some []*lent
	for _, r := range slices.Backward(w.held) {
		if is(r) && len(some) < 4 {
			some = append(some, r)
		}
	}
	if len(some) > 0 {
		do(rapid.SampledFrom(some).Draw(w.T, "lease"))
	}
}

func (w *world) anySession(do func(string)) {
	if all := w.sessions(); len(all) > 0 {
		do(rapid.SampledFrom(all).Draw(w.T, "session"))
	}
}

func (w *world) anyJob(do func(*Change, string)) {
	if len(w.m.jobs) > 0 {
		id := rapid.SampledFrom(slices.Sorted(maps.Keys(w.m.jobs))).Draw(w.T, "job")
		w.do(func(c *Change) { do(c, id) })
	}
}

// delete deletes one of all earlier jobs, if it has ended.
func (w *world) delete() {
	id := rapid.SampledFrom(slices.Sorted(maps.Values(w.requests))).Draw(w.T, "job")
	open := w.m.jobs[id] != nil
	if err := w.apply(func(c *Change) error { return c.Delete(id) }); (err != nil) != open {
		w.Fatalf("delete job %s, open %v: %v", id, open, err)
	}
}

// anyDevice makes a decision about a device, which may have been forgotten.
func (w *world) anyDevice(do func(*Change, string)) {
	if len(w.m.devices) > 0 {
		name := rapid.SampledFrom(slices.Sorted(maps.Keys(w.m.devices))).Draw(w.T, "device")
		w.do(func(c *Change) { do(c, name) })
	}
}

// giveUp cancels a waiting request for work.
func (w *world) giveUp() {
	for _, session := range w.sessions() {
		for waiter := range w.m.sessions[session].waiters {
			w.m.CancelWait(waiter)
			w.end(waiter)
			return
		}
	}
}

// behave does all work correctly until no job is open.
func (w *world) behave() {
	for range 200 {
		if len(w.m.jobs) == 0 {
			break
		}
		for _, name := range slices.Sorted(maps.Keys(w.m.jobs)) {
			w.do(func(c *Change) { c.Resume(name, "") })
		}
		for _, name := range []string{"t1", "b1", "r1"} {
			if a := w.m.agents[name]; a == nil || a.gone {
				w.join(name)
			}
		}
		for name := range w.m.devices {
			w.do(func(c *Change) { _, _ = c.Uncordon(name, "me", "") })
		}
		for _, session := range w.sessions() {
			w.leaseTo(session)
		}
		for _, r := range slices.Clone(w.held) {
			w.serve(r)
		}
		w.checkBooks()
		w.pass(20*time.Second, lively)
	}
	if n := len(w.m.jobs); n != 0 {
		w.Fatalf("%d jobs do not end", n)
	}
	if len(w.artifacts.pins) != 0 {
		w.Fatalf("artifacts stay pinned: %v", w.artifacts.pins)
	}
}

// serve completes a lease if it is still valid.
func (w *world) serve(r *lent) {
	work := w.m.lookUp(r.GetLease())
	switch {
	case work == nil:
	case r.GetBuild() != nil:
		w.reportBuild(r.GetLease(), r.GetBuild(), 2)
	case r.GetMeasure() != nil:
		w.reportMeasurements(r.GetLease(), r.GetMeasure(), 2)
	case r.GetModel() != nil:
		w.reportModel(r.GetLease(), 2)
	case len(work.parent().batches) == 0:
		w.checkDone(work.parent())
		w.do(func(c *Change) { c.Finish(r.GetLease(), tilthv1.JobState_JOB_STATE_DONE, "") })
	}
}

// checkDone checks that each proposed trial of a job was recorded, or its batch given up.
func (w *world) checkDone(j *job) {
	if proposed := w.proposed[j.id]; len(proposed) != j.proposed {
		w.Fatalf("%d trials of %s were proposed, %d are counted", len(proposed), j.id, j.proposed)
	}
	for trial, batch := range w.proposed[j.id] {
		if w.trials[trial] == 0 && !w.dead[batch] {
			w.Fatalf("trial %s of batch %s is lost", trial, batch)
		}
	}
}

// checkBooks compares all counters of the machine with its state.
func (w *world) checkBooks() {
	m := w.m
	var specBytes, candidateBytes, artifactBytes int64
	idle, queued, pins := 0, 0, map[string]int{}
	place := func(h *hold, j *job, subject string) {
		switch {
		case h.lease != nil && h.retry != nil:
			w.Fatalf("%s is leased, and waits to be tried again", subject)
		case h.lease != nil && m.leases[subject] != h.lease:
			w.Fatalf("the lease of %s is not the machine's", subject)
		case h.lease != nil && h.lease.agent.leases[subject] != h.lease:
			w.Fatalf("the lease of %s is not its agent's", subject)
		case h.lease == nil && h.retry == nil && !j.paused():
			idle++
		}
	}
	leases := 0
	for id, j := range m.jobs {
		specBytes += j.specBytes
		place(&j.hold, j, id)
		if j.lease != nil {
			leases++
		}
		for _, digest := range j.needs() {
			pins[digest]++
		}
		for id, b := range j.batches {
			candidateBytes += b.sizeBytes
			place(&b.hold, j, id)
			if b.lease != nil {
				leases++
			}
			if b.stage == storev1.Stage_STAGE_BUILD && len(b.artifacts) > 0 {
				w.Fatalf("batch %s is to be built and has artifacts", id)
			}
			for _, digest := range b.artifactDigests() {
				pins[digest]++
			}
			if m.batches[id] != b {
				w.Fatalf("batch %s is not the machine's", id)
			}
		}
	}
	for _, q := range m.queues {
		queued += q.work.Len()
	}
	for name, a := range m.agents {
		if a.gone && len(a.leases)+len(a.waiters) > 0 {
			w.Fatalf("%s is gone, and has %d leases", name, len(a.leases))
		}
	}
	for _, u := range m.owners {
		artifactBytes += u.ArtifactBytes
	}
	for name, c := range map[string][2]int64{
		"bytes of specifications": {m.load.specBytes, specBytes}, "bytes of candidates": {m.load.candidateBytes, candidateBytes},
		"leases": {int64(len(m.leases)), int64(leases)}, "work in queues": {int64(queued), int64(idle)},
		"waiting requests": {int64(m.Figures().Waiters), int64(len(w.waiting))},
	} {
		if c[0] != c[1] {
			w.Fatalf("%s: %d are counted, %d are there", name, c[0], c[1])
		}
	}
	if !maps.Equal(pins, w.artifacts.pins) {
		w.Fatalf("pinned are %v, needed %v", w.artifacts.pins, pins)
	}
	if artifactBytes > int64(10*len(pins)) {
		w.Fatalf("%d bytes of %d artifacts are on their owners' accounts", artifactBytes, len(pins))
	}
}
