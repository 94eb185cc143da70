package chaos

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// maxJobs exceeds the number of jobs in any round.
const maxJobs = 1000

// Verdict is the result of checking the promises in a round.
type Verdict struct {
	// Violations lists the broken promises, one per line. It is empty on success.
	Violations []string
	// Numbers of checked items: acknowledged jobs, candidates, build reports and measurements, and delivered
	// leases.
	Jobs, Candidates, Builds, Measurements, Leases int
	// Trials counts recorded trials. Executions counts measurements, which is higher if agents were lost at work.
	Trials, Executions int
	// DeadLetters counts abandoned batches. Cancelled and Failed count jobs.
	DeadLetters, Cancelled, Failed int
	// Requests counts the requests about jobs and their responses.
	Requests int
	// Undecided counts histories that the checker could not decide in time.
	Undecided int
}

// checker compares the store with the journals.
type checker struct {
	Verdict
	farmData
	db       records.Store
	calls    []*call
	leases   map[string]leased
	jobs     map[string]*storedJob
	measured map[string]map[string]bool // candidates reported so far, by lease
	prunes   bool                       // records may have been pruned, and with them the measurements in logs
	amid     bool                       // the round is unfinished: jobs may be open, and the store may be ahead of the client
	gap      *gap                       // lost work; nil = none
	rotted   map[string]bool            // digests of artifacts that were damaged
}

func (c *checker) violation(format string, args ...any) {
	c.Violations = append(c.Violations, fmt.Sprintf(format, args...))
}

// check checks a round by its store, the journals, and the events that the client saw of each job.
func check(k farmData, journals string, watched map[string][]*tilthv1.JobEvent) (v Verdict, err error) {
	c := &checker{farmData: k}
	defer c.close()
	if err := c.read(journals, watched); err != nil {
		return v, err
	}
	c.checkArtifacts()
	c.checkMemory()
	c.checkSessions()
	c.checkLives()
	c.checkLeases()
	c.checkControl()
	return c.Verdict, nil
}

// checkCut checks the data of an unfinished round, with journals and client events truncated accordingly.
func checkCut(data, journals string) (v Verdict, err error) {
	watched, err := readSeen(journals)
	if err != nil {
		return v, err
	}
	c := &checker{farmData: farmData{data: data}, amid: true}
	defer c.close()
	err = c.read(journals, watched)
	return c.Verdict, err
}

func (c *checker) close() {
	if c.db != nil {
		c.db.Close()
	}
}

// read compares the store with acknowledged and observed data.
func (c *checker) read(journals string, watched map[string][]*tilthv1.JobEvent) (err error) {
	c.jobs, c.measured = map[string]*storedJob{}, map[string]map[string]bool{}
	if c.calls, err = readCalls(journals); err != nil {
		return err
	}
	if c.gap, err = readGap(journals); err != nil {
		return err
	}
	if c.rotted, err = readRotted(journals); err != nil {
		return err
	}
	c.leases = leases(c.calls)
	c.Leases = len(c.leases)
	if err := c.consistent(); err != nil {
		c.violation("records file: %v", err)
	}
	if c.db, err = c.farmData.open(); err != nil {
		return err
	}
	stored, _, err := c.db.Jobs(records.JobQuery{Max: maxJobs, MaxBytes: 1 << 30})
	if err != nil {
		return err
	}
	for _, job := range stored {
		if err := c.readJob(job.GetId()); err != nil {
			c.violation("job %s: %v", job.GetId(), err)
		}
	}
	c.checkWatched(watched)
	if err := c.checkRecords(); err != nil {
		return err
	}
	for _, call := range c.calls {
		if call.accepted() && !c.gap.has(call) {
			if err := c.checkAcknowledged(call); err != nil {
				return err
			}
		}
	}
	c.checkRefused()
	return nil
}

// checkAcknowledged checks that the store has what a call acknowledged.
func (c *checker) checkAcknowledged(call *call) error {
	switch r := call.request.(type) {
	case *tilthv1.SubmitJobRequest:
		return c.checkJob(call, r)
	case *tilthv1.ProposeBatchRequest:
		c.checkProposal(call, r)
	case *tilthv1.ReportBuildRequest:
		return c.checkBuild(call, r)
	case *tilthv1.ReportMeasurementsRequest:
		c.checkMeasurements(call, r)
	case *tilthv1.FinishJobRequest:
		c.checkFinish(call, r)
	case *tilthv1.CancelJobRequest:
		c.checkCancel(call, call.answer.(*tilthv1.CancelJobResponse).GetJob())
	case *tilthv1.PauseJobRequest:
		c.checkPause(call, r)
	}
	return nil
}

func (c *checker) checkJob(call *call, r *tilthv1.SubmitJobRequest) error {
	c.Jobs++
	job := call.answer.(*tilthv1.SubmitJobResponse).GetJob()
	id := job.GetId()
	var stored *tilthv1.Job
	made, err := c.db.JobByRequest(job.GetSpec().GetOwner(), r.GetRequestId()) // the owner is the caller, whatever the request names
	if err == nil {
		stored, err = c.db.Job(made)
	}
	switch {
	case err != nil:
		c.violation("%v was acknowledged as job %s: %v", call, id, err)
	case stored.GetId() != id || stored.GetSpec().GetName() != r.GetSpec().GetName() || len(stored.GetSpec().GetTasks()) != len(r.GetSpec().GetTasks()):
		c.violation("%v was acknowledged as job %s: stored is %s, %q", call, id, stored.GetId(), stored.GetSpec().GetName())
	}
	return nil
}

func (c *checker) checkProposal(call *call, r *tilthv1.ProposeBatchRequest) {
	c.Candidates += len(r.GetCandidates())
	answer := call.answer.(*tilthv1.ProposeBatchResponse)
	b := c.batch(r.GetLease().GetSubject(), answer.GetBatchId())
	if b == nil || b.task != r.GetTaskIndex() || len(b.trials) != len(r.GetCandidates()) {
		c.violation("%v: batch %s was acknowledged and is not in the log as proposed", call, answer.GetBatchId())
		return
	}
	for i, candidate := range r.GetCandidates() {
		if t := b.trials[candidate.GetDigest()]; t == nil || t.number != answer.GetFirstTrial()+uint32(i) {
			c.violation("%v: candidate %d of batch %s was acknowledged as trial %d and is not", call, i, answer.GetBatchId(), answer.GetFirstTrial()+uint32(i))
		}
	}
}

func (c *checker) checkBuild(call *call, r *tilthv1.ReportBuildRequest) error {
	c.Builds++
	b := c.batchOf(r.GetLease())
	if b == nil {
		c.violation("%v: batch %s was reported on and is not in the log", call, r.GetLease().GetSubject())
		return nil
	}
	for _, o := range r.GetOutcomes() {
		if o.GetError() != tilthv1.ErrorClass_ERROR_CLASS_NONE {
			c.checkTrial(call, b, o.GetCandidate(), o.GetMessage())
		}
	}
	for _, a := range r.GetArtifacts() {
		if c.artifactLost(call, a.GetDigest()) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(c.artifacts(wire.ShardOf(b.id)), a.GetDigest()[:2], a.GetDigest()))
		if err != nil {
			c.violation("%v: artifact was acknowledged: %v", call, err)
		} else if records.Digest(content) != a.GetDigest() {
			c.violation("%v: artifact %s is stored with other bytes", call, a.GetDigest())
		}
	}
	return nil
}

func (c *checker) checkMeasurements(call *call, r *tilthv1.ReportMeasurementsRequest) {
	b := c.batchOf(r.GetLease())
	if b == nil {
		c.violation("%v: batch %s was reported on and is not in the log", call, r.GetLease().GetSubject())
		return
	}
	for _, m := range r.GetMeasurements() {
		c.Measurements++
		c.checkTrial(call, b, m.GetCandidate().GetDigest(), signature(m))
	}
}

// artifactLost reports whether an artifact reported by a call may be missing: its bytes were damaged, or all
// were lost.
func (c *checker) artifactLost(call *call, digest string) bool {
	return c.rotted[digest] || c.gap != nil && c.gap.Artifacts && call.begin < c.gap.To
}

// checkArtifacts checks that stored artifacts match their digests, except for damaged ones that were not read
// since.
func (c *checker) checkArtifacts() {
	for _, path := range c.allArtifacts() {
		digest := filepath.Base(path)
		content, err := os.ReadFile(path)
		if err == nil && !c.rotted[digest] && records.Digest(content) != digest {
			err = errors.New("has other bytes")
		}
		if err != nil {
			c.violation("artifact %s: %v", digest, err)
		}
	}
}

// checkTrial checks that an acknowledged outcome is the recorded one. No other lease could record it meanwhile.
func (c *checker) checkTrial(call *call, b *storedBatch, digest, outcome string) {
	t := b.trials[digest]
	switch {
	case t == nil:
		c.violation("%v: candidate %s of batch %s is not in the log", call, digest, b.id)
	case !t.recorded && !b.dropped:
		c.violation("%v: trial %d of batch %s was acknowledged and is lost", call, t.number, b.id)
	case t.recorded && t.outcome != outcome:
		c.violation("%v: trial %d of batch %s was acknowledged as %q and is recorded as %q", call, t.number, b.id, outcome, t.outcome)
	}
}

func (c *checker) checkFinish(call *call, r *tilthv1.FinishJobRequest) {
	j := c.jobs[r.GetLease().GetSubject()]
	if j == nil || j.state != r.GetState() {
		c.violation("%v: job %s was finished as %v and is not", call, r.GetLease().GetSubject(), r.GetState())
	}
}

// checkCancel checks that a job reported as ended has ended in that way.
func (c *checker) checkCancel(call *call, told *tilthv1.Job) {
	j := c.jobs[told.GetId()]
	if j == nil || !records.Final(told.GetState()) || j.state != told.GetState() {
		c.violation("%v: job %s was told to be %v after it was cancelled, and is not", call, told.GetId(), told.GetState())
	}
}

func (c *checker) checkPause(call *call, r *tilthv1.PauseJobRequest) {
	j := c.jobs[r.GetJobId()]
	if j == nil || !slices.ContainsFunc(j.events, func(e *tilthv1.JobEvent) bool { return e.GetState().GetState() == tilthv1.JobState_JOB_STATE_PAUSED }) {
		c.violation("%v: job %s was paused, and its log does not tell of it", call, r.GetJobId())
	}
}

// signature identifies a simulated outcome by its unique latency or message.
func signature(m *tilthv1.Measurement) string {
	if m.GetError() != tilthv1.ErrorClass_ERROR_CLASS_NONE {
		return m.GetMessage()
	}
	return fmt.Sprintf("%.15f s", m.GetLatencySeconds())
}
