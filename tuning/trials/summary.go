package trials

import "github.com/tilth-dev/tilth/internal/wire/names"

// Summary is what tuning achieved, for scripts.
type Summary struct {
	Job            string  `json:"job"`
	State          string  `json:"state"`
	Reason         string  `json:"reason"`
	Target         string  `json:"target"`
	Records        string  `json:"records,omitempty"`
	Tracker        string  `json:"tracker,omitempty"`
	ElapsedSeconds float64 `json:"elapsed_s"`
	Trials         int     `json:"trials"`
	// KnownTrials counts those of earlier jobs that this one went on from.
	KnownTrials int            `json:"known_trials"`
	Errors      map[string]int `json:"errors"`
	DeadLetters int            `json:"dead_letters"`
	TimeShares  Shares         `json:"time_shares"`
	// TrialSeconds is the time of the job over its trials, all included; null without trials.
	TrialSeconds *float64 `json:"trial_s"`
	// UntunedSeconds and BestSeconds are the sums over all tasks, each as often as it occurs, and LimitSeconds the
	// least that the machine could take; null while a task has none.
	UntunedSeconds *float64      `json:"untuned_s"`
	BestSeconds    *float64      `json:"best_s"`
	LimitSeconds   *float64      `json:"limit_s"`
	Tasks          []TaskSummary `json:"tasks"`
}

// TaskSummary is one task of a Summary.
type TaskSummary struct {
	Task        string         `json:"task"`
	Weight      float64        `json:"weight"`
	Flop        float64        `json:"flop"`
	Trials      int            `json:"trials"`
	KnownTrials int            `json:"known_trials"`
	Errors      map[string]int `json:"errors"`
	// Messages has the first message of each class of errors.
	Messages       map[string]string `json:"messages"`
	UntunedSeconds *float64          `json:"untuned_s"`
	BestSeconds    *float64          `json:"best_s"`
	// BestInterval is where the best one's median lies; null when that is not known.
	BestInterval *Interval `json:"best_interval"`
	// RemeasuredFrom is the latency that the best candidate had until it was measured again and found slower.
	RemeasuredFrom *float64 `json:"remeasured_from_s,omitempty"`
	LimitSeconds   *float64 `json:"limit_s"`
	// LimitByBytes says that reading and writing asks for that limit, not arithmetic.
	LimitByBytes bool    `json:"limit_by_bytes"`
	BuildSeconds float64 `json:"build_s"`
	RunSeconds   float64 `json:"run_s"`
}

// Interval holds a median with a probability of Level.
type Interval struct {
	LowSeconds  float64 `json:"low_s"`
	HighSeconds float64 `json:"high_s"`
	Level       float64 `json:"level"`
}

// BestInterval is Interval for scripts; nil when it is not known.
func (t *Task) BestInterval() *Interval {
	low, high, level := t.Interval()
	if high == 0 {
		return nil
	}
	return &Interval{low, high, level}
}

// Summary sums up the tally; what it does not know (job, target, where the records are) is left to the caller.
func (t *Tally) Summary() Summary {
	s := Summary{
		State: names.JobState(t.State), Reason: t.Reason, ElapsedSeconds: t.Elapsed().Seconds(), Trials: t.Trials(),
		KnownTrials: t.KnownTrials(), Errors: t.Errors(), DeadLetters: t.DeadLetters, TimeShares: t.Spent().Shares(t.Elapsed()),
		TrialSeconds:   t.trialSeconds(),
		UntunedSeconds: positive(t.UntunedSeconds()), BestSeconds: positive(t.BestSeconds()), LimitSeconds: positive(t.LimitSeconds()),
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
		UntunedSeconds: positive(t.UntunedSeconds), BestSeconds: positive(t.BestSeconds), LimitSeconds: positive(limit),
		BestInterval: t.BestInterval(), RemeasuredFrom: positive(t.RemeasuredFrom),
		LimitByBytes: byBytes, BuildSeconds: t.BuildSeconds, RunSeconds: t.RunSeconds,
	}
}

// trialSeconds is what a trial took in the mean, all included.
func (t *Tally) trialSeconds() *float64 {
	if t.Trials() == 0 {
		return nil
	}
	return positive(t.Elapsed().Seconds() / float64(t.Trials()))
}
