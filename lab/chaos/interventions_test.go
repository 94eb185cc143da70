package chaos

import (
	"context"
	"time"

	"github.com/tilth-dev/tilth/internal/retry"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// intervention is an action of a client on its own running job. The zero value is no action.
type intervention struct {
	from   time.Duration // time of submission
	method string        // cancel, or pause, after which it resumes
	at     time.Duration
	lasts  time.Duration // of a pause
}

// interventions draws a intervention for each job. Most have none, and some are paused or cancelled.
func (d *draw) interventions(jobs int) (out []intervention) {
	for range jobs {
		w := intervention{at: d.span(0, d.within), lasts: d.span(50*time.Millisecond, time.Second)}
		switch d.IntN(6) {
		case 0:
			w.method, w.lasts = "cancel", 0
		case 1, 2:
			w.method = "pause"
		}
		out = append(out, w)
	}
	return out
}

// perform performs the action. An ended job may refuse it. The checker sees accepted actions.
func (w intervention) perform(ctx context.Context, conn *journalingConn, job string) {
	if w.method == "" || retry.Sleep(ctx, w.at) != nil {
		return
	}
	client := tilthv1.NewJobServiceClient(conn)
	call := func(what string, f func(context.Context) error) { _ = retry.Do(ctx, quiet, impatient, what, f) }
	if w.method == "cancel" {
		call("CancelJob", func(ctx context.Context) error {
			_, err := client.CancelJob(ctx, &tilthv1.CancelJobRequest{JobId: job, Reason: "a whim"})
			return err
		})
		return
	}
	call("PauseJob", func(ctx context.Context) error {
		_, err := client.PauseJob(ctx, &tilthv1.PauseJobRequest{JobId: job, Reason: "a whim"})
		return err
	})
	for retry.Sleep(ctx, w.lasts) == nil && !w.resumed(ctx, client, job, call) {
	}
}

// resumed resumes a job and reports whether it has ended. A delayed pause may still take effect later.
func (w intervention) resumed(ctx context.Context, client tilthv1.JobServiceClient, job string, call func(string, func(context.Context) error)) (ended bool) {
	call("GetJob", func(ctx context.Context) error {
		answer, err := client.GetJob(ctx, &tilthv1.GetJobRequest{JobId: job})
		ended = records.Final(answer.GetJob().GetState())
		if err != nil || answer.GetJob().GetState() != tilthv1.JobState_JOB_STATE_PAUSED {
			return err
		}
		_, err = client.ResumeJob(ctx, &tilthv1.ResumeJobRequest{JobId: job})
		return err
	})
	return ended
}
