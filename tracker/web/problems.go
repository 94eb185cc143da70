package web

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/internal/humanize"
)

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
		if out = append(out, one("/devices", "work waits for a %s of class %s, and none is leased to any: %.0f", kind, class, q.Value)...); len(out) == maxProblems {
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
			out = append(out, one("/jobs?state=open", "jobs that stand still (%s): %.0f", f.Name, f.Value)...)
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
	return grewBy("error", "/jobs", "batches that were given up lately after %s: %.0f")(alert{Metrics: []string{"dead_letters_total"}}, v)
}

// trialsFail fires while too many trials fail on devices.
func trialsFail(a alert, v view) []problem {
	failed, all := 0.0, v.now.where("trials_total", "", "")-v.before.where("trials_total", "", "")
	for _, class := range []string{"wrong_result", "crash", "timeout"} {
		failed += v.now.where("trials_total", "error", class) - v.before.where("trials_total", "error", class)
	}
	if all > 0 && failed/all > a.Limit {
		return one("/jobs", "%s of the trials that were recorded in half an hour failed on the device", humanize.Percent(failed, all))
	}
	return nil
}
