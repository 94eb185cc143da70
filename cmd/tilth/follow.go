package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/internal/job"
	"github.com/tilth-dev/tilth/internal/progress"
	"github.com/tilth-dev/tilth/internal/show"
	"github.com/tilth-dev/tilth/internal/trials"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// sparseEvery is the least time between two lines of progress off a terminal.
const sparseEvery = 10 * time.Second

// followFlags say how a job is shown.
type followFlags struct {
	log    string
	asJSON bool
	quiet  bool
	level  logFlag

	file *os.File // of log, once it is open
}

func (f *followFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.log, "log", "", "`file` for one JSON object per trial")
	c.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "show no progress")
	jsonFlag(c, &f.asJSON)
}

// openLog makes the log's file. It comes before a job is submitted: one that nobody can log is not begun.
func (f *followFlags) openLog() (err error) {
	if f.log == "" {
		return nil
	}
	if f.file, err = os.Create(f.log); err != nil {
		return fmt.Errorf("log: %w", err)
	}
	return nil
}

// follower shows a job while it runs, and keeps count.
type follower struct {
	tally   *trials.Tally
	display progress.Display
	log     *trials.Log
	file    io.Closer
}

// newFollower begins to show a job, or, off a terminal, to write of it. The log is open, if there is one.
func (f *followFlags) newFollower(a *app, j *tilthv1.Job, budget progress.Budget) *follower {
	w := &follower{tally: trials.NewTally(j, job.Untuned(j.GetSpec()))}
	if f.file != nil {
		w.file, w.log = f.file, trials.NewLog(f.file, w.tally)
	}
	switch terminal, height := terminalOf(a.stderr); {
	case f.quiet:
		w.display = progress.Quiet{Writer: a.stderr}
	case terminal:
		w.display = progress.NewLive(a.stderr, w.tally, budget, height, time.Now)
	default:
		w.display = progress.NewSparse(a.stderr, budget, sparseEvery)
	}
	return w
}

// terminalOf says whether a writer is a terminal, and its height in lines.
func terminalOf(w io.Writer) (bool, int) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return false, 0
	}
	_, height, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return true, 0
	}
	return true, height
}

// watch follows the job from its first event to its last.
func (w *follower) watch(ctx context.Context, c *client.Client, jobID string) error {
	return c.Watch(ctx, jobID, uint64(w.tally.Events)+1, func(event *tilthv1.JobEvent) error {
		w.tally.Add(event)
		w.display.Update(w.tally)
		if w.log != nil {
			return w.log.Add(event)
		}
		return nil
	})
}

// close ends the display and the log.
func (w *follower) close() error {
	w.display.Close()
	if w.file == nil {
		return nil
	}
	return w.file.Close()
}

// finish prints what the job came to; an error says that it failed.
func (w *follower) finish(a *app, asJSON bool, summary trials.Summary) error {
	if asJSON {
		if err := writeJSON(a.stdout, summary); err != nil {
			return err
		}
	} else if err := w.print(a, summary); err != nil {
		return err
	}
	if w.tally.State == tilthv1.JobState_JOB_STATE_FAILED {
		return errors.New("job " + summary.Job + " failed: " + w.tally.Reason)
	}
	return nil
}

func (w *follower) print(a *app, s trials.Summary) error {
	if err := w.tally.WriteTable(a.stdout); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "\njob %s: %s (%s) after %s\n", s.Job, s.State, s.Reason, show.Clock(w.tally.Elapsed()))
	if s.DeadLetters > 0 {
		fmt.Fprintf(a.stdout, "given up: %d batches (see 'tilth jobs show %s')\n", s.DeadLetters, s.Job)
	}
	fmt.Fprintf(a.stdout, "target:  %s\n", s.Target)
	if s.Records != "" {
		fmt.Fprintf(a.stdout, "records: %s\n", s.Records)
	} else {
		fmt.Fprintf(a.stdout, "records: at tracker %s\n", s.Tracker)
	}
	return nil
}

// owner is who submits.
func owner() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "uid " + fmt.Sprint(os.Getuid())
}
