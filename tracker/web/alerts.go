package web

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tilth-dev/tilth/internal/humanize"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// alert is an alert of deploy/prometheus/alerts.yml, evaluated with the tracker's own metrics. A test compares this
// table with that file.
type alert struct {
	// Name is the name of the alert and of its section in docs/operations.md.
	Name string
	// Metrics are the metrics in its expression, without the tracker's prefix.
	Metrics []string
	// Limit is the threshold, Window the interval over which counters grow, For how long the condition must hold.
	Limit       float64
	Window, For time.Duration
	// wrong returns the current problems, or nothing.
	wrong func(a alert, v view) []problem
}

// view is the input of alerts.
type view struct {
	now, before metrics
	at          time.Time
	// jobs are the newest open jobs; set only when rendering a page.
	jobs []*tilthv1.Job
	// notReady is why the tracker is not ready, or nil.
	notReady error
}

// notEvaluated lists the alerts that a tracker cannot evaluate, with the reasons.
var notEvaluated = map[string]string{
	"TilthNoTrackerServes":     "a tracker does not know the state of others",
	"TilthShardWithoutTracker": "a tracker does not know which shards others hold",
	"TilthAgentDown":           "only Prometheus polls the agents",
	"TilthDeviceDisturbed":     "only runners export the metric",
	"TilthCostModelInaccurate": "only tuners export the metric",
}

// reasons are the wait reasons that only an operator can resolve.
const reasons = "no_device|no_builder|no_tuner|cordoned|quarantined|resting"

// alerts are the alerts that a tracker can evaluate.
var alerts = []alert{
	{Name: "TilthTrackerDown", For: time.Minute, wrong: func(_ alert, v view) []problem {
		if v.notReady == nil {
			return nil
		}
		return one("", "the tracker is not ready: %v", v.notReady)
	}},
	{Name: "TilthDiskNearlyFull", Metrics: []string{"disk_free_bytes"}, Limit: 2e9, For: 5 * time.Minute, wrong: func(a alert, v view) []problem {
		if free, is := v.now.only("disk_free_bytes"); is && free < a.Limit {
			return one("", "the tracker's disk has %s left; the tracker stops when it is full", humanize.Bytes(int64(free)))
		}
		return nil
	}},
	{Name: "TilthDiskSlow", Metrics: []string{"fsync_seconds_bucket"}, Limit: 0.1, Window: 10 * time.Minute, For: 10 * time.Minute, wrong: diskSlow},
	{Name: "TilthArtifactsDamaged", Metrics: []string{"artifacts_dropped_total"}, Window: 24 * time.Hour,
		wrong: grew("reason", "damaged", "artifacts found damaged on the tracker's disk in the last day: %.0f")},
	{Name: "TilthArtifactsAway", Metrics: []string{"artifacts_away"}, For: 5 * time.Minute,
		wrong: above("", "the tracker cannot use its object store; uploads and downloads wait")},
	{Name: "TilthStoreDamaged", Metrics: []string{"store_damaged_rows_total"}, Window: 24 * time.Hour,
		wrong: grew("", "", "rows of the tracker's records found damaged in the last day: %.0f")},
	{Name: "TilthStoreAway", Metrics: []string{"store_away"}, For: time.Minute,
		wrong: above("", "the tracker cannot reach its database and refuses calls")},
	{Name: "TilthBackupOld", Metrics: []string{"backup_last_success_timestamp_seconds", "backup_interval_seconds"}, Limit: 2, For: 15 * time.Minute,
		wrong: func(a alert, v view) []problem {
			made, _ := v.now.only("backup_last_success_timestamp_seconds")
			every, _ := v.now.only("backup_interval_seconds")
			if age := unix(v.at) - made; every > 0 && age > a.Limit*every {
				return one("", "the last good backup of the tracker's records was made %s", humanize.Ago(fromUnix(made), v.at))
			}
			return nil
		}},
	{Name: "TilthTrackerOverloaded", Metrics: []string{"refused_total"}, Window: 10 * time.Minute, For: 10 * time.Minute,
		wrong: grew("limit", "load_", "calls refused in 10 minutes because a limit was reached: %.0f")},
	{Name: "TilthCallsRefused", Metrics: []string{"calls_refused_total"}, Limit: 100, Window: 15 * time.Minute,
		wrong: grew("", "", "calls of unauthenticated or unauthorised callers refused in 15 minutes: %.0f")},
	{Name: "TilthCertificateExpires", Metrics: []string{"certificate_expiry_timestamp_seconds"}, Limit: 14 * 86400, wrong: func(a alert, v view) []problem {
		if ends, is := v.now.only("certificate_expiry_timestamp_seconds"); is && ends-unix(v.at) < a.Limit {
			return one("", "the tracker's certificate expires %s", humanize.Ago(fromUnix(ends), v.at))
		}
		return nil
	}},
	{Name: "TilthIssuerAway", Metrics: []string{"issuer_keys_timestamp_seconds"}, Limit: 3600, For: 15 * time.Minute,
		wrong: func(a alert, v view) []problem {
			read, is := v.now.only("issuer_keys_timestamp_seconds")
			switch age := unix(v.at) - read; {
			case !is || age <= a.Limit:
				return nil
			case read == 0:
				return one("", "the token issuer's keys have never been read")
			default:
				return one("", "the token issuer's keys were last read %s", humanize.Ago(fromUnix(read), v.at))
			}
		}},
	{Name: "TilthWorkWaits", Metrics: []string{"queue_depth", "leases_granted_total"}, Window: 15 * time.Minute, For: 15 * time.Minute, wrong: workWaits},
	{Name: "TilthJobsCannotRun", Metrics: []string{"waiting_jobs"}, For: 15 * time.Minute, wrong: cannotRun},
	{Name: "TilthDeadLetters", Metrics: []string{"dead_letters_total"}, Window: 15 * time.Minute, wrong: deadLetters},
	{Name: "TilthTrialsFail", Metrics: []string{"trials_total"}, Limit: 0.2, Window: 30 * time.Minute, For: 15 * time.Minute, wrong: trialsFail},
	{Name: "TilthOutage", Metrics: []string{"outage_silent_agents"},
		wrong: above("/devices", "silent agents that the tracker waits for: %.0f")},
	{Name: "TilthLeasesExpire", Metrics: []string{"leases_expired_total"}, Limit: 3, Window: 15 * time.Minute,
		wrong: grewBy("kind", "/devices", "leases of a %s lost in 15 minutes: %.0f")},
	{Name: "TilthDevicesQuarantined", Metrics: []string{"devices"}, For: 30 * time.Minute, wrong: func(a alert, v view) []problem {
		if n := v.now.max("devices", "state", "quarantined"); n > a.Limit {
			return one("/devices?state=quarantined", "devices quarantined because they measure badly: %.0f", n)
		}
		return nil
	}},
	{Name: "TilthDevicesWarned", Metrics: []string{"warned_devices"}, For: 30 * time.Minute,
		wrong: above("/devices?state=warned", "devices that measure badly and have no replacement: %.0f")},
}

func unix(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

func fromUnix(seconds float64) time.Time { return time.Unix(int64(seconds), 0) }

// one returns a single problem.
func one(link, format string, values ...any) []problem {
	return []problem{{Text: fmt.Sprintf(format, values...), Link: link}}
}

// above fires while a gauge exceeds the limit; of shards, each of which may report it for the whole farm, the largest
// counts. text may contain a verb for it.
func above(link, text string) func(alert, view) []problem {
	return func(a alert, v view) []problem {
		if n := v.now.max(a.Metrics[0], "", ""); n > a.Limit {
			return []problem{{Text: fill(text, n), Link: link}}
		}
		return nil
	}
}

// grew fires if a counter has grown by more than the limit in the window, over series whose label has the prefix.
func grew(label, prefix, text string) func(alert, view) []problem {
	return func(a alert, v view) []problem {
		if n := v.now.where(a.Metrics[0], label, prefix) - v.before.where(a.Metrics[0], label, prefix); n > a.Limit {
			return one("", text, n)
		}
		return nil
	}
}

// grewBy fires for each value of a label whose counter has grown by more than the limit in the window.
func grewBy(label, link, text string) func(alert, view) []problem {
	return func(a alert, v view) (out []problem) {
		for _, f := range v.now.figures(a.Metrics[0], label) {
			if n := f.Value - v.before.where(a.Metrics[0], label, f.Name); n > a.Limit {
				out = append(out, one(link, text, f.Name, n)...)
			}
		}
		return out
	}
}

// maxProblems bounds the problems shown per alert.
const maxProblems = 10

// fill formats text with a number if it contains a verb.
func fill(text string, n float64) string {
	if strings.Contains(text, "%") {
		return fmt.Sprintf(text, n)
	}
	return text
}

// diskSlow fires if more than 1 % of recent transactions waited for the disk longer than the limit.
func diskSlow(a alert, v view) []problem {
	all, slow := v.now.slower("fsync_seconds", a.Limit)
	allBefore, slowBefore := v.before.slower("fsync_seconds", a.Limit)
	if n := all - allBefore; n > 0 && (slow-slowBefore)/n > 0.01 {
		return one("", "%s of the transactions wait longer than %s for the tracker's disk", humanize.Percent(slow-slowBefore, n), humanize.Seconds(a.Limit))
	}
	return nil
}

// workWaits fires for each non-empty queue whose kind of agent got no lease within the window.
func workWaits(a alert, v view) (out []problem) {
	for _, q := range v.now.figures("queue_depth", "kind", "class") {
		kind, class, _ := strings.Cut(q.Name, " ")
		if v.now.where("leases_granted_total", "kind", kind) > v.before.where("leases_granted_total", "kind", kind) {
			continue
		}
		if out = append(out, one("/devices", "work waits for a %s of class %s, but none gets a lease: %.0f", kind, class, q.Value)...); len(out) == maxProblems {
			break
		}
	}
	return out
}

// cannotRun fires while jobs are stuck. It names the viewed jobs, or counts by reason.
func cannotRun(_ alert, v view) (out []problem) {
	for _, j := range v.jobs {
		if j.GetWait().GetNothingCanRun() && len(out) < maxProblems {
			out = append(out, one("/jobs/"+j.GetId(), "%s is waiting: %s", j.GetSpec().GetName(), j.GetWait().GetMessage())...)
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, f := range v.now.figures("waiting_jobs", "reason") {
		if strings.Contains("|"+reasons+"|", "|"+f.Name+"|") {
			out = append(out, one("/jobs?state=open", "jobs that cannot run (%s): %.0f", f.Name, f.Value)...)
		}
	}
	return out
}

// deadLetters fires while viewed jobs have dead letters, or if batches were given up recently.
func deadLetters(_ alert, v view) (out []problem) {
	for _, j := range v.jobs {
		if n := len(j.GetDeadLetters()); n > 0 && len(out) < maxProblems {
			out = append(out, one("/jobs/"+j.GetId(), "%s: batches given up: %d", j.GetSpec().GetName(), n)...)
		}
	}
	if len(out) > 0 {
		return out
	}
	return grewBy("error", "/jobs", "batches given up in 15 minutes after %s: %.0f")(alert{Metrics: []string{"dead_letters_total"}}, v)
}

// trialsFail fires while too many trials fail on devices.
func trialsFail(a alert, v view) []problem {
	failed, all := 0.0, v.now.where("trials_total", "", "")-v.before.where("trials_total", "", "")
	for _, class := range []string{"wrong_result", "crash", "timeout"} {
		failed += v.now.where("trials_total", "error", class) - v.before.where("trials_total", "error", class)
	}
	if all > 0 && failed/all > a.Limit {
		return one("/jobs", "%s of the trials recorded in half an hour failed on the device", humanize.Percent(failed, all))
	}
	return nil
}

// problems evaluates all alerts. An alert that has not fired long enough is pending, as in Prometheus.
func (s *Site) problems(v view) (out []problem) {
	for _, a := range alerts {
		if v.before = nil; a.Window > 0 {
			v.before = s.history.before(v.at, a.Window)
		}
		found := a.wrong(a, v)
		lasted := s.history.held(a.Name, len(found) > 0, v.at)
		for _, p := range found {
			p.Alert, p.Pending = a.Name, lasted < a.For
			out = append(out, p)
		}
	}
	return out
}

// Sampling of counters: every minute for an hour, every half hour for a day.
const (
	noteEvery      = time.Minute
	fineFor        = time.Hour
	coarseInterval = 30 * time.Minute
	historyLength  = 25 * time.Hour
	maxNotes       = int(fineFor/noteEvery+historyLength/coarseInterval) + 2
)

// history holds past values of counters, and since when alerts have been firing.
type history struct {
	mu    sync.Mutex
	notes []note
	since map[string]time.Time
}

// note holds the counters at one time.
type note struct {
	at time.Time
	metrics
}

// Run samples counters until ctx ends. Alerts need them to compute growth.
func (s *Site) Run(ctx context.Context) {
	tick := time.Tick(noteEvery)
	for {
		m := s.gather()
		s.history.note(m, s.Now())
		s.problems(view{now: m, at: s.Now(), notReady: s.Checks.Ready(ctx)})
		select {
		case <-tick:
		case <-ctx.Done():
			return
		}
	}
}

// note stores the counters that alerts use.
func (w *history) note(m metrics, now time.Time) {
	kept := metrics{}
	for _, a := range alerts {
		for _, name := range a.Metrics {
			name = strings.TrimSuffix(name, "_bucket")
			if f := m[name]; a.Window > 0 && f != nil {
				kept[name] = f
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, note{now, kept})
	var last time.Time
	w.notes = slices.DeleteFunc(w.notes, func(n note) bool {
		age := now.Sub(n.at)
		old := age > historyLength || age > fineFor && n.at.Sub(last) < coarseInterval
		if !old {
			last = n.at
		}
		return old
	})
	w.notes = w.notes[max(0, len(w.notes)-maxNotes):]
}

// before returns the counters as of window ago. A tracker that has not run that long started from zero.
func (w *history) before(now time.Time, window time.Duration) metrics {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range slices.Backward(w.notes) {
		if now.Sub(n.at) >= window {
			return n.metrics
		}
	}
	return metrics{}
}

// rate returns the growth of a counter per second since the last note, or the one before; negative if unknown.
func (w *history) rate(name string, count float64, now time.Time) float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range slices.Backward(w.notes) {
		if passed := now.Sub(n.at); passed >= noteEvery/2 {
			return max(0, count-n.where(name, "", "")) / passed.Seconds()
		}
	}
	return -1
}

// held returns how long an alert has been firing; 0 if it is not.
func (w *history) held(name string, holds bool, now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !holds {
		delete(w.since, name)
		return 0
	}
	if _, is := w.since[name]; !is {
		if w.since == nil {
			w.since = map[string]time.Time{}
		}
		w.since[name] = now
	}
	return now.Sub(w.since[name])
}
