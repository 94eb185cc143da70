package chaos

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
	"google.golang.org/grpc/codes"

	"github.com/tilth-dev/tilth/internal/retry"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// A job behaves like a single object for all callers: some order of the requests, consistent with their start
// and end times, explains each response. An unfinished job may fail at any time.

// request is a request about a job, or (read) the state that a response reported, or the condition that a
// refusal reported (missing, ended).
type request struct {
	what  string // submit, pause, resume, cancel, finish, read, missing or ended
	state tilthv1.JobState
	// answered is set if the request was accepted; otherwise it may still have taken effect.
	answered bool
}

// States of a job as seen by callers, whether or not an agent works on it.
const (
	absent  = tilthv1.JobState_JOB_STATE_UNSPECIFIED
	under   = tilthv1.JobState_JOB_STATE_RUNNING
	resting = tilthv1.JobState_JOB_STATE_PAUSED
	failed  = tilthv1.JobState_JOB_STATE_FAILED
)

// stateOf maps a job's state to the model's.
func stateOf(s tilthv1.JobState) tilthv1.JobState {
	if s == resting || records.Final(s) {
		return s
	}
	return under
}

// after returns the possible states of a job after a request, or nil if the response is impossible.
func (r request) after(s tilthv1.JobState) []tilthv1.JobState {
	out := r.effect(s)
	if !r.answered {
		out = append(out, s)
	}
	if s == under || s == resting {
		out = append(out, r.effect(failed)...)
	}
	return out
}

func (r request) effect(s tilthv1.JobState) []tilthv1.JobState {
	runs := s == under || s == resting
	switch {
	case r.what == "submit" && s == absent:
		return []tilthv1.JobState{under}
	case r.what == "missing" && s == absent, r.what == "ended" && records.Final(s):
		return []tilthv1.JobState{s}
	case s == absent:
		return nil
	case r.what == "submit", r.what == "read" && r.state == s:
		return []tilthv1.JobState{s}
	case r.what == "pause" && runs:
		return []tilthv1.JobState{resting}
	case r.what == "resume" && runs:
		return []tilthv1.JobState{under}
	case r.what == "cancel" && runs:
		return []tilthv1.JobState{tilthv1.JobState_JOB_STATE_CANCELLED}
	case r.what == "cancel": // has already ended
		return []tilthv1.JobState{s}
	case r.what == "finish" && (s == under || s == r.state):
		return []tilthv1.JobState{r.state}
	}
	return nil
}

var jobModel = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{absent} },
	Step: func(state, input, _ any) (out []any) {
		for _, s := range input.(request).after(state.(tilthv1.JobState)) {
			out = append(out, s)
		}
		return out
	},
}).ToModel()

// checkControl checks that each job's history is linearizable. A restoration resets jobs.
func (c *checker) checkControl() {
	if c.gap != nil {
		return
	}
	histories := map[string][]porcupine.Operation{}
	add := func(call *call, id string, r request) {
		r.answered = call.accepted()
		histories[id] = append(histories[id], porcupine.Operation{Input: r, Call: call.begin, Return: call.end})
	}
	made := map[string]string{} // jobs, by request
	for _, call := range c.calls {
		if answer, is := call.answer.(*tilthv1.SubmitJobResponse); is {
			made[call.request.(*tilthv1.SubmitJobRequest).GetRequestId()] = answer.GetJob().GetId()
		}
	}
	for _, call := range c.calls {
		if !call.accepted() && !call.unknown() {
			continue
		}
		if id := deniedOf(call); id != "" {
			denial := request{what: denials[call.denied], answered: true}
			histories[id] = append(histories[id], porcupine.Operation{Input: denial, Call: call.begin, Return: call.deniedAt})
			continue
		}
		id, what := asked(call, made)
		if id != "" {
			add(call, id, what)
		}
		if job, is := call.answer.(interface{ GetJob() *tilthv1.Job }); is {
			add(call, job.GetJob().GetId(), request{what: "read", state: stateOf(job.GetJob().GetState())})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(histories)) {
		switch porcupine.CheckOperationsTimeout(jobModel, histories[id], maxTime) {
		case porcupine.Illegal:
			c.violation("job %s: what was answered about it has no order: %s", id, describeRequests(histories[id]))
		case porcupine.Unknown:
			c.Undecided++
		}
		c.Requests += len(histories[id])
	}
}

// denials maps the status of a refused call to the job's condition.
var denials = map[string]string{codes.NotFound.String(): "missing", codes.FailedPrecondition.String(): "ended"}

// deniedOf returns the job whose condition a refusal reported, or "".
func deniedOf(call *call) string {
	if call.denied == "" {
		return ""
	}
	switch q := call.request.(type) {
	case *tilthv1.GetJobRequest:
		return q.GetJobId()
	case *tilthv1.PauseJobRequest:
		return q.GetJobId()
	case *tilthv1.ResumeJobRequest:
		return q.GetJobId()
	case *tilthv1.CancelJobRequest:
		return q.GetJobId()
	}
	return ""
}

// asked returns the job and the request of a call. made maps requests to submitted jobs.
func asked(call *call, made map[string]string) (id string, r request) {
	switch q := call.request.(type) {
	case *tilthv1.SubmitJobRequest:
		return made[q.GetRequestId()], request{what: "submit"}
	case *tilthv1.PauseJobRequest:
		return q.GetJobId(), request{what: "pause"}
	case *tilthv1.ResumeJobRequest:
		return q.GetJobId(), request{what: "resume"}
	case *tilthv1.CancelJobRequest:
		return q.GetJobId(), request{what: "cancel"}
	case *tilthv1.FinishJobRequest:
		return q.GetLease().GetSubject(), request{what: "finish", state: q.GetState()}
	}
	return "", r
}

func describeRequests(history []porcupine.Operation) (out []string) {
	for _, o := range history {
		r := o.Input.(request)
		out = append(out, fmt.Sprintf("%s %v answered=%v [%d %d]", r.what, r.state, r.answered, o.Call, o.Return))
	}
	return out
}

// readEvery is the client's polling interval for a job.
const readEvery = 200 * time.Millisecond

// look polls a job until ctx ends.
func look(ctx context.Context, w *journalingConn, id string) {
	client := tilthv1.NewJobServiceClient(w)
	for retry.Sleep(ctx, readEvery) == nil {
		within, cancel := context.WithTimeout(ctx, impatient.Try)
		_, _ = client.GetJob(within, &tilthv1.GetJobRequest{JobId: id}) // the journal records the outcome
		cancel()
	}
}
