package main

import (
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/cmd/tilth/display"
	"github.com/tilth-dev/tilth/internal/humanize"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/web"
	"github.com/tilth-dev/tilth/tuner/jobclient"
	"github.com/tilth-dev/tilth/tuner/progress"
)

// sparseEvery is the minimum interval between progress lines without a terminal.
const sparseEvery = 10 * time.Second

// followFlags configures the display of a job.
type followFlags struct {
	log   string
	plot  plotFlag
	quiet bool
	level logFlag

	file *os.File // of log, once it is open
}

func (f *followFlags) add(a *app, c *cobra.Command) {
	c.Flags().StringVar(&f.log, "log", "", "`file` for a JSON object per trial")
	f.plot.add(c)
	c.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "show no progress")
	a.tableFlags(c)
}

// open creates the output files. It must be called before the job is submitted, so that a job without a
// writable log never starts.
func (f *followFlags) open() (err error) {
	if f.log == stdio {
		return usagef("--log -: name a file, since standard output has the summary")
	}
	if err := f.plot.begin(); err != nil || f.log == "" {
		return err
	}
	if f.file, err = os.Create(f.log); err != nil {
		return fmt.Errorf("log: %w", err)
	}
	return nil
}

// follower displays and tallies a running job.
type follower struct {
	job     *tilthv1.Job
	tally   *progress.Tally
	display display.Display
	log     *progress.Log
	file    *os.File // nil without a log
	plot    plotFlag
	// own is set for a farm in this process, whose missing agents are about to join.
	own bool
	// machine describes the last wait for a machine; empty if there was none.
	machine string
}

// newFollower starts displaying a job. The output files must be open.
func (f *followFlags) newFollower(a *app, j *tilthv1.Job, budget display.Budget) *follower {
	w := &follower{job: j, tally: progress.NewTally(j, jobclient.References(j.GetSpec())), plot: f.plot}
	if f.file != nil {
		w.file, w.log = f.file, progress.NewLog(f.file, w.tally)
	}
	terminal, is := terminalOf(a.stderr)
	switch {
	case f.quiet:
		w.display = display.Quiet{Writer: a.stderr}
	case is:
		w.display = display.NewLive(terminal, w.tally, budget, time.Now)
	default:
		w.display = display.NewSparse(a.stderr, budget, sparseEvery)
	}
	if known := w.tally.KnownTrials(); known > 0 && !f.quiet {
		fmt.Fprintf(w.display, "resumed: %d trials of an earlier run are known\n", known)
	}
	return w
}

// terminalOf returns the terminal behind a writer. ok is false if the writer is not a terminal that knows escapes, and
// the result then writes to it.
func terminalOf(w io.Writer) (terminal display.Terminal, ok bool) {
	clean, _ := w.(humanize.Clean)
	f, ok := clean.Writer.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return display.Terminal{Writer: w}, false
	}
	size := func() (width, height int) {
		width, height, err := term.GetSize(int(f.Fd()))
		if err != nil {
			return 0, 0
		}
		return width, height
	}
	return display.Terminal{Writer: f, Size: size}, true
}

// watch follows the job from its first event to its last.
func (w *follower) watch(ctx context.Context, c *client.Client) error {
	h := jobclient.FollowHooks{Changed: func() { w.display.Update(w.tally) }, Restored: w.forget, Status: func(status *tilthv1.JobStatus) {
		if status.GetWait().GetReason() == tilthv1.WaitReason_WAIT_REASON_MACHINE {
			w.machine = status.GetWait().GetMessage()
		} else if w.own {
			status.Wait = nil
		}
	}}
	if w.log != nil {
		h.Event = w.log.Add
	}
	err := jobclient.Follow(ctx, c, w.job, w.tally, h)
	parting, cancel := context.WithTimeout(context.WithoutCancel(ctx), partingTimeout)
	defer cancel()
	if j, lost := c.Job(parting, w.job.GetId()); lost == nil {
		w.tally.FarmFailures = progress.FarmFailures(j)
	}
	return err
}

// forget restarts the log of a job whose history was replaced.
func (w *follower) forget() error {
	fmt.Fprintln(w.display, "the tracker's records were restored from a backup: reading the job's history again")
	if w.file == nil {
		return nil
	}
	if info, err := w.file.Stat(); err != nil || !info.Mode().IsRegular() {
		return err // data written to a pipe cannot be removed
	}
	_, err := w.file.Seek(0, io.SeekStart)
	return errors.Join(err, w.file.Truncate(0))
}

// close ends the display and the log, and draws the plot.
func (w *follower) close() error {
	w.display.Close()
	err := w.plot.write(w.job, w.tally)
	if w.file != nil {
		err = errors.Join(err, w.file.Close())
	}
	return err
}

// finish prints the result of the job, and returns an error if it failed. where completes the summary.
func (w *follower) finish(a *app, where progress.Summary) error {
	w.tally.AddModels(where.Models)
	s := w.tally.Summary()
	s.Job, s.Target = w.job.GetId(), w.job.GetSpec().GetTarget().GetFingerprint()
	s.Records, s.Tracker, s.MachineWait, s.Models = where.Records, where.Tracker, where.MachineWait, where.Models
	if w.machine != "" {
		s.MachineWait = cmp.Or(s.MachineWait, &progress.MachineWait{Message: w.machine})
	}
	if err := a.show(s, func(out io.Writer) error { return w.print(out, s) }); err != nil {
		return err
	}
	switch {
	case w.tally.State == tilthv1.JobState_JOB_STATE_FAILED:
		return errors.New("job " + s.Job + " failed: " + w.tally.Reason)
	case w.tally.NoneCorrect():
		return fmt.Errorf("job %s: none of its %d trials was correct: see the first message of each class of errors", s.Job, s.Trials)
	case w.tally.NoneMeasured() && w.tally.State == tilthv1.JobState_JOB_STATE_DONE:
		return fmt.Errorf("job %s: no trial was measured: %s", s.Job, s.Reason)
	}
	return nil
}

func (w *follower) print(out io.Writer, s progress.Summary) error {
	if err := errors.Join(w.tally.WriteTable(out), w.tally.WriteFailures(out)); err != nil {
		return err
	}
	fmt.Fprintf(out, "\njob %s: %s (%s) after %s\n", s.Job, s.State, s.Reason, humanize.Clock(w.tally.Elapsed()))
	fmt.Fprintf(out, "time:    %s; %s a trial\n", s.TimeShares, seconds(s.TrialSeconds))
	if m := s.MachineWait; m != nil {
		fmt.Fprintf(out, "waited:  for the machine, beside the budget of time: %s\n", m.Message)
	}
	if s.KnownTrials > 0 {
		fmt.Fprintf(out, "resumed: %d trials of an earlier run are counted in, beside the %d of this one\n", s.KnownTrials, s.Trials)
	}
	for _, m := range s.Models {
		fmt.Fprintf(out, "model:   %s\n", m)
	}
	if s.DeadLetters > 0 {
		fmt.Fprintf(out, "given up: %d batches (see 'tilth jobs show %s')\n", s.DeadLetters, s.Job)
	}
	fmt.Fprintf(out, "target:  %s\n", s.Target)
	if s.Records != "" {
		fmt.Fprintf(out, "records: %s\n", s.Records)
	} else {
		fmt.Fprintf(out, "records: at tracker %s\n", s.Tracker)
	}
	return nil
}

// owner returns the submitting user.
func owner() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "uid " + fmt.Sprint(os.Getuid())
}

// relay passes writes to the current owner of the terminal, so that log lines do not break a live display.
type relay struct {
	mu    sync.Mutex
	to    io.Writer
	muted bool
}

// Write implements io.Writer.
func (r *relay) Write(p []byte) (int, error) {
	r.mu.Lock()
	to := r.to
	if r.muted {
		to = io.Discard
	}
	r.mu.Unlock()
	return to.Write(p)
}

func (r *relay) set(to io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = to
}

// mute drops further writes, because the services of a failed or stopping farm log errors about each other.
func (r *relay) mute() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.muted = true
}

// plotCurve is the data of a plot. Latencies are in seconds; 0 means unknown.
type plotCurve struct {
	// Title may be any text.
	Title  string
	Points progress.Curve
	// Elapsed and Trials are the end of the curve.
	Elapsed time.Duration
	Trials  int
	// Untuned is the latency with default schedules, and Limit the machine's lower bound.
	Untuned, Limit float64
}

const (
	plotWidth, plotHeight = 960, 280
	plotLeft, plotTop     = 12, 60
	panelWidth            = (plotWidth - 3*plotLeft) / 2
)

// plotStyle supports light and dark pages.
const plotStyle = `
    text { font: 13px system-ui, sans-serif; fill: #333 }
    .title { font-size: 16px; font-weight: 600 }
    .note, .tick, .axis { fill: #666 }
    .page { fill: #fff }
    .grid { stroke: #e4e4e4 }
    .curve { fill: none; stroke: #0b62c4; stroke-width: 2; stroke-linejoin: round }
    .dot { fill: #0b62c4 }
    .limit { stroke: #a4511b; stroke-dasharray: 5 4 }
    .tick.limit-text { fill: #a4511b }
    @media (prefers-color-scheme: dark) {
      text { fill: #ddd }
      .note, .tick, .axis { fill: #999 }
      .page { fill: #16181c }
      .grid { stroke: #2c3036 }
      .curve { stroke: #6cb0ff }
      .dot { fill: #6cb0ff }
      .limit { stroke: #f0a36b }
      .tick.limit-text { fill: #f0a36b }
    }
  `

// write writes the charts of a job's page as an SVG document. It skips impossible latencies.
func (c plotCurve) write(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+"\n",
		plotWidth, plotHeight, plotWidth, plotHeight)
	fmt.Fprintf(&out, "  <title>%s</title>\n  <style>%s</style>\n", escapeXML(c.Title), plotStyle)
	fmt.Fprintf(&out, `  <rect class="page" width="%d" height="%d"/>`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&out, `  <text class="title" x="%d" y="26">%s</text>`+"\n", plotLeft, escapeXML(c.Title))
	fmt.Fprintf(&out, `  <text class="note" x="%d" y="46">%s</text>`+"\n", plotLeft, escapeXML(c.note()))
	byTime, byTrials := web.Curves(c.Points, c.Limit)
	for k, chart := range []any{byTime, byTrials} {
		fmt.Fprintf(&out, `  <svg x="%d" y="%d" width="%d" height="%d">%s</svg>`+"\n", plotLeft+k*(panelWidth+plotLeft), plotTop, panelWidth, plotHeight-plotTop, chart)
	}
	out.WriteString("</svg>\n")
	_, err := io.WriteString(w, out.String())
	return err
}

// escapeXML escapes a text for XML. Invalid characters become replacement characters.
func escapeXML(text string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(text)) // a Builder does not fail
	return out.String()
}

// note summarises the result in words.
func (c plotCurve) note() string {
	if len(c.Points) == 0 {
		return "no latency: some tasks have no verified candidate yet"
	}
	best := c.Points[len(c.Points)-1].Seconds
	text := fmt.Sprintf("%s after %s and %d trials", humanize.Seconds(best), humanize.Clock(c.Elapsed), c.Trials)
	if c.Untuned > 0 {
		text += fmt.Sprintf("; untuned %s, %s", humanize.Seconds(c.Untuned), humanize.Ratio(c.Untuned, best))
	}
	if c.Limit > 0 {
		text += fmt.Sprintf("; the machine's limit for direct sums is %s", humanize.Seconds(c.Limit))
	}
	return text
}
