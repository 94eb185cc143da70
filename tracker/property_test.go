package tracker_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/tilth-dev/tilth/internal/agent"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/tracker"
)

// chaos is a farm whose agents join, die, repeat calls and report late, in any order, while the tracker restarts.
type chaos struct {
	t   *rapid.T
	dir string
	db  *bolt.DB
	tr  *tracker.Tracker

	metrics *prometheus.Registry
	// ahead is the offset of the tracker's clock from the test's.
	ahead time.Duration

	job      string
	paused   bool
	tuner    *tilthv1.LeaseToken // nil while the job is paused
	proposed uint64
	trials   int
	sessions map[string]string                    // by agent name
	held     []*tilthv1.LeaseWorkResponse         // granted leases, valid or lost
	builds   []*tilthv1.ReportBuildRequest        // reports sent
	runs     []*tilthv1.ReportMeasurementsRequest // reports sent
	accepted map[proto.Message]bool               // accepted reports
}

// TestNoTrialIsLostOrRecordedTwice checks that after random sequences of events every job ends once the farm works.
// Every trial must be recorded once or in a dead letter, and the log must have no gaps.
func TestNoTrialIsLostOrRecordedTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "chaos")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		c := &chaos{t: t, dir: dir, sessions: map[string]string{}, accepted: map[proto.Message]bool{}}
		c.start()
		defer func() { c.stop() }()
		r, err := c.tr.SubmitJob(t.Context(), &tilthv1.SubmitJobRequest{RequestId: "r", Spec: spec("conv", "pool")})
		c.must(err)
		c.job = r.GetJob().GetId()
		c.join("tuner", tilthv1.AgentKind_AGENT_KIND_TUNER)
		c.searches()
		for _, name := range []string{"b1", "b2"} {
			c.join(name, tilthv1.AgentKind_AGENT_KIND_BUILDER)
		}
		for _, name := range []string{"r1", "r2"} {
			c.join(name, tilthv1.AgentKind_AGENT_KIND_RUNNER)
		}
		t.Repeat(map[string]func(*rapid.T){
			"join":    c.anyJoin,
			"lease":   c.anyLease,
			"propose": c.anyProposal,
			"build":   c.anyBuild,
			"batch":   c.anyBatch,
			"measure": c.anyMeasurement,
			"repeat":  c.anyRepetition,
			"return":  c.anyReturn,
			"time":    c.anyWait,
			"pause":   c.anyPause,
			"retry":   func(*rapid.T) { c.retryDead() },
			"restart": func(*rapid.T) { c.stop(); c.start() },
		})
		c.settle()
		c.checkLog()
		c.checkMemory()
	})
}

func (c *chaos) must(err error) {
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *chaos) start() {
	var err error
	c.db, err = bolt.Open(filepath.Join(c.dir, "r.db"), bolt.Options{})
	c.must(err)
	c.metrics = prometheus.NewRegistry()
	c.tr, err = tracker.New(tracker.Config{
		Store: c.db, Registerer: c.metrics, ArtifactsDir: filepath.Join(c.dir, "artifacts"), MaxAttempts: 3,
		LeaseTimeout: 24 * time.Hour, // agents that send no heartbeats keep their leases however far the clock advances
		Clock:        func() time.Time { return time.Now().Add(c.ahead) },
	})
	c.must(err)
}

func (c *chaos) stop() { c.must(c.db.Close()) }

func (c *chaos) join(name string, kind tilthv1.AgentKind) {
	r, err := c.tr.Join(c.t.Context(), &tilthv1.JoinRequest{Spec: agentSpec(name, kind)})
	c.must(err)
	c.sessions[name] = r.GetSession()
}

// anyJoin starts or restarts an agent.
func (c *chaos) anyJoin(t *rapid.T) {
	if rapid.Bool().Draw(t, "builder") {
		c.join(rapid.SampledFrom([]string{"b1", "b2"}).Draw(t, "agent"), tilthv1.AgentKind_AGENT_KIND_BUILDER)
	} else {
		c.join(rapid.SampledFrom([]string{"r1", "r2"}).Draw(t, "agent"), tilthv1.AgentKind_AGENT_KIND_RUNNER)
	}
}

func (c *chaos) anyLease(t *rapid.T) {
	c.lease(rapid.SampledFrom([]string{"b1", "b2", "r1", "r2"}).Draw(t, "agent"))
}

func (c *chaos) lease(name string) *tilthv1.LeaseWorkResponse {
	session := c.sessions[name]
	if session == "" {
		return nil
	}
	r, err := c.tr.LeaseWork(c.t.Context(), &tilthv1.LeaseWorkRequest{Session: session})
	c.must(err)
	if r.GetLease() == nil {
		return nil
	}
	c.held = append(c.held, r)
	return r
}

// searches leases the job to the tuner.
func (c *chaos) searches() {
	r, err := c.tr.LeaseWork(c.t.Context(), &tilthv1.LeaseWorkRequest{Session: c.sessions["tuner"]})
	c.must(err)
	c.tuner = r.GetLease()
}

func (c *chaos) anyProposal(t *rapid.T) {
	if c.paused {
		return
	}
	var names []string
	for i := range rapid.IntRange(1, 4).Draw(t, "candidates") {
		names = append(names, fmt.Sprintf("%d.%d", c.proposed, i))
	}
	r := &tilthv1.ProposeBatchRequest{
		Lease: c.tuner, Proposal: c.proposed, TaskIndex: rapid.Uint32Range(0, 1).Draw(t, "task"), Candidates: candidates(names...),
	}
	first, err := c.tr.ProposeBatch(t.Context(), r)
	c.must(err)
	again, err := c.tr.ProposeBatch(t.Context(), r)
	c.must(err)
	if !proto.Equal(first, again) {
		t.Fatalf("repeating proposal %v gave %v", first, again)
	}
	c.proposed++
	c.trials += len(names)
}

// anyBatch brings a batch to a runner, which random single steps rarely do.
func (c *chaos) anyBatch(t *rapid.T) {
	c.anyProposal(t)
	if w := c.lease("b1"); isBuild(w) {
		c.buildWork(w, len(w.GetBuild().GetCandidates()))
	}
	c.lease("r1")
}

// heldWork draws a lease of a kind: in half of the cases the latest, otherwise any.
func (c *chaos) heldWork(t *rapid.T, want func(*tilthv1.LeaseWorkResponse) bool) *tilthv1.LeaseWorkResponse {
	if len(c.held) == 0 {
		return nil
	}
	w := c.held[len(c.held)-1]
	if rapid.Bool().Draw(t, "old") {
		w = rapid.SampledFrom(c.held).Draw(t, "lease")
	}
	if !want(w) {
		return nil
	}
	return w
}

func isBuild(w *tilthv1.LeaseWorkResponse) bool   { return w.GetBuild() != nil }
func isMeasure(w *tilthv1.LeaseWorkResponse) bool { return w.GetMeasure() != nil }

func (c *chaos) anyBuild(t *rapid.T) {
	w := c.heldWork(t, isBuild)
	if w == nil {
		return
	}
	if rapid.IntRange(0, 2).Draw(t, "infra") == 0 {
		c.sendBuild(&tilthv1.ReportBuildRequest{Lease: w.GetLease(), InfraError: tilthv1.ErrorClass_ERROR_CLASS_BUILD_INFRA})
		return
	}
	c.buildWork(w, rapid.IntRange(0, len(w.GetBuild().GetCandidates())).Draw(t, "built"))
}

// buildWork reports the first candidates as built, and the others as refused by the compiler.
func (c *chaos) buildWork(w *tilthv1.LeaseWorkResponse, built int) {
	r := &tilthv1.ReportBuildRequest{Lease: w.GetLease()}
	for i, candidate := range w.GetBuild().GetCandidates() {
		class := none
		if i >= built {
			class = tilthv1.ErrorClass_ERROR_CLASS_COMPILE_ERROR
		}
		r.Outcomes = append(r.Outcomes, &tilthv1.BuildOutcome{Candidate: candidate.GetDigest(), Error: class})
	}
	if built > 0 {
		r.Artifacts = []*tilthv1.ArtifactRef{c.artifact()}
	}
	c.sendBuild(r)
}

// artifact creates an artifact's file like an upload.
func (c *chaos) artifact() *tilthv1.ArtifactRef {
	content := []byte("object")
	digest := records.Digest(content)
	path := filepath.Join(c.dir, "artifacts", digest[:2], digest)
	if _, err := os.Stat(path); err != nil {
		c.must(os.MkdirAll(filepath.Dir(path), 0o755))
		c.must(os.WriteFile(path, content, 0o644))
		c.stop()
		c.start()
	}
	return &tilthv1.ArtifactRef{Role: "candidates", Digest: digest, SizeBytes: uint64(len(content))}
}

func (c *chaos) sendBuild(r *tilthv1.ReportBuildRequest) {
	_, err := c.tr.ReportBuild(c.t.Context(), r)
	c.builds = append(c.builds, r)
	c.sent(r, err)
}

func (c *chaos) anyMeasurement(t *rapid.T) {
	w := c.heldWork(t, isMeasure)
	if w == nil {
		return
	}
	r := &tilthv1.ReportMeasurementsRequest{Lease: w.GetLease()}
	for _, candidate := range w.GetMeasure().GetCandidates() {
		switch rapid.IntRange(0, 3).Draw(t, "outcome") {
		case 0:
			r.Measurements = append(r.Measurements, crashed(candidate))
		case 1, 2:
			r.Measurements = append(r.Measurements, ok(candidate, 0.5))
		}
	}
	if len(r.GetMeasurements()) == 0 {
		r.InfraError = tilthv1.ErrorClass_ERROR_CLASS_DEVICE_INFRA
	}
	c.sendRun(r)
}

func (c *chaos) sendRun(r *tilthv1.ReportMeasurementsRequest) {
	_, err := c.tr.ReportMeasurements(c.t.Context(), r)
	c.runs = append(c.runs, r)
	c.sent(r, err)
}

// sent checks that a report is either accepted or refused as stale.
func (c *chaos) sent(r proto.Message, err error) {
	if err != nil && !agent.Stale(err) {
		c.t.Fatalf("a report was refused for another reason than its lease: %v", err)
	}
	c.accepted[r] = c.accepted[r] || err == nil
}

// anyRepetition repeats a report as if its answer was lost.
func (c *chaos) anyRepetition(t *rapid.T) {
	if len(c.builds) == 0 || len(c.runs) == 0 {
		return
	}
	if rapid.Bool().Draw(t, "build") {
		r := rapid.SampledFrom(c.builds).Draw(t, "report")
		_, err := c.tr.ReportBuild(t.Context(), r)
		if c.accepted[r] && err != nil {
			t.Fatalf("an accepted build report was refused when repeated: %v", err)
		}
		c.sent(r, err)
	} else {
		r := rapid.SampledFrom(c.runs).Draw(t, "report")
		_, err := c.tr.ReportMeasurements(t.Context(), r)
		c.sent(r, err)
	}
}

func (c *chaos) anyReturn(t *rapid.T) {
	w := c.heldWork(t, func(*tilthv1.LeaseWorkResponse) bool { return true })
	if w == nil {
		return
	}
	_, err := c.tr.ReturnLease(t.Context(), &tilthv1.ReturnLeaseRequest{Lease: w.GetLease()})
	c.must(err)
}

// anyWait advances the clock, so that retry delays and cooldowns may end.
func (c *chaos) anyWait(t *rapid.T) {
	c.ahead += time.Duration(rapid.IntRange(0, 60).Draw(t, "seconds")) * time.Second
}

// anyPause pauses or resumes the job, and repeats each call.
func (c *chaos) anyPause(t *rapid.T) {
	if c.paused {
		c.resume()
		return
	}
	for range 2 {
		r, err := c.tr.PauseJob(t.Context(), &tilthv1.PauseJobRequest{JobId: c.job})
		c.must(err)
		if r.GetJob().GetState() != tilthv1.JobState_JOB_STATE_PAUSED {
			t.Fatalf("the paused job is %v", r.GetJob().GetState())
		}
	}
	c.paused = true
	if c.tuner != nil {
		_, err := c.tr.ProposeBatch(t.Context(), &tilthv1.ProposeBatchRequest{Lease: c.tuner, Proposal: c.proposed, Candidates: candidates("late")})
		if !agent.Stale(err) {
			t.Fatalf("a tuner proposed for a paused job: %v", err)
		}
	}
}

func (c *chaos) resume() {
	for range 2 {
		_, err := c.tr.ResumeJob(c.t.Context(), &tilthv1.ResumeJobRequest{JobId: c.job})
		c.must(err)
	}
	c.paused = false
	c.searches()
}

func (c *chaos) retryDead() {
	_, err := c.tr.RetryDeadLetters(c.t.Context(), &tilthv1.RetryDeadLettersRequest{JobId: c.job})
	c.must(err)
}

// settle finishes all jobs with a working farm.
func (c *chaos) settle() {
	if c.paused {
		c.resume()
	}
	for _, name := range []string{"b2", "r2"} {
		if c.sessions[name] != "" {
			_, err := c.tr.Leave(c.t.Context(), &tilthv1.LeaveRequest{Session: c.sessions[name]})
			c.must(err)
		}
	}
	c.join("b1", tilthv1.AgentKind_AGENT_KIND_BUILDER)
	c.join("r1", tilthv1.AgentKind_AGENT_KIND_RUNNER)
	c.artifact()
	for idle := 0; idle < 3; idle++ {
		c.ahead += 10 * time.Minute // all delays are over
		c.work(&idle)
	}
	_, err := c.tr.FinishJob(c.t.Context(), &tilthv1.FinishJobRequest{Lease: c.tuner, State: tilthv1.JobState_JOB_STATE_DONE})
	c.must(err)
}

// work does all available work.
func (c *chaos) work(idle *int) {
	for busy := true; busy; {
		busy = false
		if w := c.lease("b1"); w != nil {
			busy = true
			c.buildWork(w, len(w.GetBuild().GetCandidates()))
		}
		if w := c.lease("r1"); w != nil {
			busy = true
			r := &tilthv1.ReportMeasurementsRequest{Lease: w.GetLease()}
			for _, candidate := range w.GetMeasure().GetCandidates() {
				r.Measurements = append(r.Measurements, ok(candidate, 0.25))
			}
			c.sendRun(r)
		}
		if busy {
			*idle = 0
		}
	}
}

func (c *chaos) checkLog() {
	events, err := c.db.Events(c.job, 1, 1<<20)
	c.must(err)
	open := map[string]map[string]bool{}  // by batch: digests of unaccounted trials
	given := map[string]map[string]bool{} // likewise of abandoned trials
	numbers := map[string]bool{}
	recorded, dead := 0, 0
	for i, e := range events {
		if e.GetSequence() != uint64(i+1) {
			c.t.Fatalf("event %d has sequence %d", i+1, e.GetSequence())
		}
		switch v := e.GetEvent().(type) {
		case *tilthv1.JobEvent_Proposed:
			open[v.Proposed.GetBatchId()] = map[string]bool{}
			for _, candidate := range v.Proposed.GetCandidates() {
				open[v.Proposed.GetBatchId()][candidate.GetDigest()] = true
				number := fmt.Sprint(v.Proposed.GetTaskIndex(), candidate.GetTrial())
				if numbers[number] {
					c.t.Fatalf("two trials of one task have number %s", number)
				}
				numbers[number] = true
			}
		case *tilthv1.JobEvent_Trial:
			recorded++
			batch, digest := open[v.Trial.GetBatchId()], v.Trial.GetMeasurement().GetCandidate().GetDigest()
			if !batch[digest] {
				c.t.Fatalf("trial %v of batch %s is recorded twice, or after its batch was given up", v.Trial.GetMeasurement(), v.Trial.GetBatchId())
			}
			delete(batch, digest)
		case *tilthv1.JobEvent_DeadLetter:
			given[v.DeadLetter.GetBatchId()] = open[v.DeadLetter.GetBatchId()]
			delete(open, v.DeadLetter.GetBatchId())
		case *tilthv1.JobEvent_Retried:
			open[v.Retried.GetBatchId()] = given[v.Retried.GetBatchId()]
			delete(given, v.Retried.GetBatchId())
			if n := len(open[v.Retried.GetBatchId()]); n != int(v.Retried.GetTrials()) {
				c.t.Fatalf("%v is tried again for %d trials, of %d that are not recorded", v.Retried.GetBatchId(), v.Retried.GetTrials(), n)
			}
		}
	}
	for _, trials := range given {
		dead += len(trials)
	}
	if recorded+dead != c.trials {
		c.t.Fatalf("%d trials proposed, %d recorded and %d given up", c.trials, recorded, dead)
	}
	c.checkProgress(recorded)
}

// checkMemory checks that an ended job leaves no state.
func (c *chaos) checkMemory() {
	owners, err := c.tr.ListOwners(c.t.Context(), &tilthv1.ListOwnersRequest{})
	c.must(err)
	if len(owners.GetOwners()) > 0 {
		c.t.Fatalf("owners are left: %v", owners)
	}
	families, err := c.metrics.Gather()
	c.must(err)
	for _, f := range families {
		switch f.GetName() {
		case "tilth_tracker_spec_bytes", "tilth_tracker_candidate_bytes", "tilth_tracker_leases", "tilth_tracker_retries_waiting",
			"tilth_tracker_queue_depth", "tilth_tracker_batches", "tilth_tracker_open_jobs":
			for _, m := range f.GetMetric() {
				if m.GetGauge().GetValue() != 0 {
					c.t.Fatalf("%s is %v", f.GetName(), m)
				}
			}
		}
	}
}

func (c *chaos) checkProgress(recorded int) {
	job, err := c.db.Job(c.job)
	c.must(err)
	progress := job.GetProgress()[0].GetTrials() + job.GetProgress()[1].GetTrials()
	stored := 0
	c.must(c.db.List(c.t.Context(), "", "", func(*tilthv1.Record) error { stored++; return nil }))
	if int(progress) != recorded || stored != recorded {
		c.t.Fatalf("%d trials in the log, %d in the progress, %d records", recorded, progress, stored)
	}
}
