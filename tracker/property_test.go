package tracker_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/tilth-dev/tilth/agent"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker"
)

// chaos is a farm in which agents come, die, repeat themselves and report late, in any order, while the tracker restarts.
type chaos struct {
	t   *rapid.T
	dir string
	db  *records.DB
	tr  *tracker.Tracker

	job      string
	tuner    *tilthv1.LeaseToken
	proposed uint64
	trials   int
	sessions map[string]string                    // by agent name
	held     []*tilthv1.LeaseWorkResponse         // leases granted, in force or long lost
	builds   []*tilthv1.ReportBuildRequest        // reports sent
	runs     []*tilthv1.ReportMeasurementsRequest // reports sent
	accepted map[proto.Message]bool               // reports that were accepted
}

// TestNoTrialIsLostOrRecordedTwice checks, after any sequence of events, that a job whose farm then behaves ends with
// every trial either recorded once or told in a dead letter, and with a log without gaps.
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
		t.Repeat(map[string]func(*rapid.T){
			"join":    c.anyJoin,
			"lease":   c.anyLease,
			"propose": c.anyProposal,
			"build":   c.anyBuild,
			"measure": c.anyMeasurement,
			"repeat":  c.anyRepetition,
			"return":  c.anyReturn,
			"restart": func(*rapid.T) { c.stop(); c.start() },
		})
		c.settle()
		c.checkLog()
	})
}

func (c *chaos) must(err error) {
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *chaos) start() {
	var err error
	c.db, err = records.Open(filepath.Join(c.dir, "r.db"), records.Options{})
	c.must(err)
	c.tr, err = tracker.New(tracker.Config{Store: c.db, ArtifactsDir: filepath.Join(c.dir, "artifacts"), MaxAttempts: 3})
	c.must(err)
}

func (c *chaos) stop() { c.must(c.db.Close()) }

func (c *chaos) join(name string, kind tilthv1.AgentKind) {
	r, err := c.tr.Join(c.t.Context(), &tilthv1.JoinRequest{Spec: agentSpec(name, kind)})
	c.must(err)
	c.sessions[name] = r.GetSession()
}

// anyJoin is an agent that starts, or was killed and starts again.
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

// searches leases the job.
func (c *chaos) searches() {
	r, err := c.tr.LeaseWork(c.t.Context(), &tilthv1.LeaseWorkRequest{Session: c.sessions["tuner"]})
	c.must(err)
	c.tuner = r.GetLease()
}

func (c *chaos) anyProposal(t *rapid.T) {
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

// heldWork draws a lease granted at some time, of the kind wanted.
func (c *chaos) heldWork(t *rapid.T, want func(*tilthv1.LeaseWorkResponse) bool) *tilthv1.LeaseWorkResponse {
	if len(c.held) == 0 {
		return nil
	}
	w := rapid.SampledFrom(c.held).Draw(t, "lease")
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
	if rapid.IntRange(0, 5).Draw(t, "infra") == 0 {
		c.sendBuild(&tilthv1.ReportBuildRequest{Lease: w.GetLease(), InfraError: tilthv1.ErrorClass_ERROR_CLASS_BUILD_INFRA})
		return
	}
	c.buildWork(w, rapid.IntRange(0, len(w.GetBuild().GetCandidates())).Draw(t, "built"))
}

// buildWork reports the first candidates as built and the others as refused by the compiler.
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

// artifact puts a file where an upload would.
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

// sent checks that a report is accepted or refused as stale, and nothing else.
func (c *chaos) sent(r proto.Message, err error) {
	if err != nil && !agent.Stale(err) {
		c.t.Fatalf("a report was refused for another reason than its lease: %v", err)
	}
	c.accepted[r] = c.accepted[r] || err == nil
}

// anyRepetition repeats a report whose answer was lost.
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

// settle lets a farm that behaves do the rest.
func (c *chaos) settle() {
	for _, name := range []string{"b2", "r2"} {
		if c.sessions[name] != "" {
			_, err := c.tr.Leave(c.t.Context(), &tilthv1.LeaveRequest{Session: c.sessions[name]})
			c.must(err)
		}
	}
	c.join("b1", tilthv1.AgentKind_AGENT_KIND_BUILDER)
	c.join("r1", tilthv1.AgentKind_AGENT_KIND_RUNNER)
	c.artifact()
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
	}
	_, err := c.tr.FinishJob(c.t.Context(), &tilthv1.FinishJobRequest{Lease: c.tuner, State: tilthv1.JobState_JOB_STATE_DONE})
	c.must(err)
}

func (c *chaos) checkLog() {
	events, err := c.db.Events(c.job, 1, 1<<20)
	c.must(err)
	open := map[string]map[string]bool{} // by batch, digests of trials not accounted for
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
			dead += len(open[v.DeadLetter.GetBatchId()])
			delete(open, v.DeadLetter.GetBatchId())
		}
	}
	if recorded+dead != c.trials {
		c.t.Fatalf("%d trials proposed, %d recorded and %d given up", c.trials, recorded, dead)
	}
	c.checkProgress(recorded)
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
