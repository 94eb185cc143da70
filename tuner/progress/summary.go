package progress

import (
	"fmt"
	"time"

	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/stats"
	"github.com/tilth-dev/tilth/internal/wire"
)

// Summary is the result of tuning, for scripts.
type Summary struct {
	Job            string  `json:"job"`
	State          string  `json:"state"`
	Reason         string  `json:"reason"`
	Target         string  `json:"target"`
	Records        string  `json:"records,omitempty"`
	Tracker        string  `json:"tracker,omitempty"`
	ElapsedSeconds float64 `json:"elapsed_s"`
	Trials         int     `json:"trials"`
	// KnownTrials counts the trials of earlier jobs that this one continues from.
	KnownTrials int            `json:"known_trials"`
	Errors      map[string]int `json:"errors"`
	DeadLetters int            `json:"dead_letters"`
	// FarmFailures holds the last failure of each class that no candidate caused.
	FarmFailures []FarmFailure `json:"failures"`
	TimeShares   Shares        `json:"time_shares"`
	// MachineWait is absent if other processes never kept the job from its machine.
	MachineWait *MachineWait `json:"machine_wait,omitempty"`
	// Models compares the models as a whole; absent where the job was too short or did not run here.
	Models []MeasuredModel `json:"models,omitempty"`
	// TrialSeconds is the job's time per trial; null without trials.
	TrialSeconds *float64 `json:"trial_s"`
	// UntunedSeconds and BestSeconds are the weighted sums over all tasks, and LimitSeconds the machine's
	// lower bound; null while one of a task is unknown.
	UntunedSeconds *float64      `json:"untuned_s"`
	BestSeconds    *float64      `json:"best_s"`
	LimitSeconds   *float64      `json:"limit_s"`
	Tasks          []TaskSummary `json:"tasks"`
}

// MeasuredModel compares packages of a model with default and with tuned schedules, timed in turns.
type MeasuredModel struct {
	Model          string  `json:"model"`
	UntunedSeconds float64 `json:"untuned_s"`
	TunedSeconds   float64 `json:"tuned_s"`
	stats.Paired
	// Verdict judges the tuned package: faster, slower, noise or too few rounds.
	Verdict string `json:"verdict"`
	// Tasks compares the kernels of each task within the model.
	Tasks []MeasuredTask `json:"tasks"`
}

// MeasuredTask compares a task's default and tuned kernels within a model, executed in turns. Latencies are those of a
// call.
type MeasuredTask struct {
	Task           string  `json:"task"`
	Workload       string  `json:"workload"`
	UntunedSeconds float64 `json:"untuned_s"`
	TunedSeconds   float64 `json:"tuned_s"`
	stats.Paired
	// KeepsDefault is set if packages have the default schedule.
	KeepsDefault bool `json:"keeps_default"`
}

func (m *MeasuredTask) untuned() float64 {
	if m == nil {
		return 0
	}
	return m.UntunedSeconds
}

// seconds returns the latency of the schedule that packages will have.
func (m *MeasuredTask) seconds() float64 {
	if m == nil || m.KeepsDefault {
		return m.untuned()
	}
	return m.TunedSeconds
}

// String describes the comparison in a line.
func (m MeasuredModel) String() string {
	text := fmt.Sprintf("%s %s, untuned %s in turns: %.2fx (%.2f to %.2fx)",
		m.Model, humanize.Seconds(m.TunedSeconds), humanize.Seconds(m.UntunedSeconds), m.Ratio, m.Low, m.High)
	switch m.Verdict {
	case stats.Faster:
		return text
	case stats.Slower:
		return text + ", slower: compile it with --untuned"
	}
	return text + ", " + m.Verdict
}

// MachineWait describes how long other processes kept a job from its machine.
type MachineWait struct {
	// Seconds and Holders are the total time and the last processes, on this machine only.
	Seconds float64         `json:"waited_s"`
	Holders []MachineHolder `json:"held_by"`
	// Message describes the wait for people.
	Message string `json:"message"`
}

// MachineHolder is a process that held a machine's lock.
type MachineHolder struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
}

// TaskSummary is one task of a Summary.
type TaskSummary struct {
	Task        string         `json:"task"`
	Weight      float64        `json:"weight"`
	Flop        float64        `json:"flop"`
	Trials      int            `json:"trials"`
	KnownTrials int            `json:"known_trials"`
	Errors      map[string]int `json:"errors"`
	// Messages holds the first message of each error class.
	Messages       map[string]string `json:"messages"`
	UntunedSeconds *float64          `json:"untuned_s"`
	BestSeconds    *float64          `json:"best_s"`
	// BestInterval is the confidence interval of the best median; null if unknown.
	BestInterval *Interval `json:"best_interval"`
	// RemeasuredFrom is the earlier latency of the best candidate if it was found slower when measured again.
	RemeasuredFrom *float64 `json:"remeasured_from_s,omitempty"`
	LimitSeconds   *float64 `json:"limit_s"`
	// LimitByBytes is set if memory transfers, not arithmetic, determine the limit.
	LimitByBytes bool    `json:"limit_by_bytes"`
	BuildSeconds float64 `json:"build_s"`
	RunSeconds   float64 `json:"run_s"`
}

// Interval is a confidence interval of a median at a Level.
type Interval struct {
	LowSeconds  float64 `json:"low_s"`
	HighSeconds float64 `json:"high_s"`
	Level       float64 `json:"level"`
}

// BestInterval returns Interval for scripts, or nil if unknown.
func (t *Task) BestInterval() *Interval {
	low, high, level := t.Interval()
	if high == 0 {
		return nil
	}
	return &Interval{low, high, level}
}

// Summary summarises the tally. The caller must set the job, the target and the location of the records.
func (t *Tally) Summary() Summary {
	s := Summary{
		State: wire.JobState(t.State), Reason: t.Reason, ElapsedSeconds: t.Elapsed().Seconds(), Trials: t.Trials(),
		KnownTrials: t.KnownTrials(), Errors: t.Errors(), DeadLetters: t.DeadLetters, FarmFailures: t.FarmFailures, TimeShares: t.Spent().Shares(t.Elapsed()),
		TrialSeconds:   t.trialSeconds(),
		UntunedSeconds: Positive(t.UntunedSeconds()), BestSeconds: Positive(t.BestSeconds()), LimitSeconds: Positive(t.LimitSeconds()),
		Tasks: []TaskSummary{},
	}
	for i := range t.Tasks {
		s.Tasks = append(s.Tasks, t.Tasks[i].summary())
	}
	return s
}

func (t *Task) summary() TaskSummary {
	limit, byBytes := t.Limit()
	return TaskSummary{
		Task: t.Name, Weight: t.Weight, Flop: t.Flop, Trials: t.Trials, KnownTrials: t.KnownTrials, Errors: t.Errors, Messages: t.Messages,
		UntunedSeconds: Positive(t.UntunedSeconds), BestSeconds: Positive(t.BestSeconds), LimitSeconds: Positive(limit),
		BestInterval: t.BestInterval(), RemeasuredFrom: Positive(t.RemeasuredFrom),
		LimitByBytes: byBytes, BuildSeconds: t.BuildSeconds, RunSeconds: t.RunSeconds,
	}
}

// trialSeconds returns the mean time of a trial, all included.
func (t *Tally) trialSeconds() *float64 {
	if t.Trials() == 0 {
		return nil
	}
	return Positive(t.Elapsed().Seconds() / float64(t.Trials()))
}

// Spent holds the seconds spent on searching, building and measuring.
type Spent struct{ Search, Build, Measure float64 }

// Spent returns the time spent on the trials so far.
func (t *Tally) Spent() Spent {
	s := Spent{Search: t.SearchSeconds}
	for i := range t.Tasks {
		s.Build += t.Tasks[i].BuildSeconds
		s.Measure += t.Tasks[i].RunSeconds
	}
	return s
}

// Shares divides a job's time into parts of 1.
type Shares struct {
	Search  float64 `json:"search"`
	Build   float64 `json:"build"`
	Measure float64 `json:"measure"`
	// Wait is the rest: starting, transferring data, and waiting for devices and for each other.
	Wait float64 `json:"wait"`
}

// Shares divides the elapsed time. If search, build and measurement overlap, as on a farm, shares are
// relative to their sum, without waiting.
func (s Spent) Shares(elapsed time.Duration) Shares {
	busy := s.Search + s.Build + s.Measure
	total := max(elapsed.Seconds(), busy)
	if total == 0 {
		return Shares{Wait: 1}
	}
	return Shares{Search: s.Search / total, Build: s.Build / total, Measure: s.Measure / total, Wait: (total - busy) / total}
}

// String formats the shares for people.
func (s Shares) String() string {
	return fmt.Sprintf("search %.0f %%, build %.0f %%, measure %.0f %%, wait %.0f %%", 100*s.Search, 100*s.Build, 100*s.Measure, 100*s.Wait)
}

// Point is the total latency of all tasks from some moment of a job on.
type Point struct {
	// Elapsed is the time since the job's creation, and Trials the number of recorded trials.
	Elapsed time.Duration
	Trials  int
	Seconds float64
}

// Curve is the weighted sum of the tasks' best latencies over time. It starts when every task has a latency,
// and has a point for each change.
type Curve []Point

func (c *Curve) add(t *Tally) {
	best := t.BestSeconds()
	if best == 0 || len(*c) > 0 && (*c)[len(*c)-1].Seconds == best {
		return
	}
	*c = append(*c, Point{Elapsed: t.Elapsed(), Trials: t.Trials(), Seconds: best})
}
