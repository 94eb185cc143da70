package web

import (
	"net/http"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// openStates are the states of open jobs.
var openStates = []tilthv1.JobState{
	tilthv1.JobState_JOB_STATE_QUEUED, tilthv1.JobState_JOB_STATE_RUNNING, tilthv1.JobState_JOB_STATE_PAUSED,
	tilthv1.JobState_JOB_STATE_READING,
}

// problem is a current problem, with the alert whose runbook explains what to do.
type problem struct {
	Alert, Text, Link string
	// Pending is set until the condition has held as long as the alert requires.
	Pending bool
}

// Runbook returns the address of the section on the alert.
func (p problem) Runbook() string {
	return "https://github.com/tilth-dev/tilth/blob/main/docs/operations.md#" + strings.ToLower(p.Alert)
}

// figure is a named count.
type figure struct {
	Name  string
	Value float64
}

// overviewPage summarizes the farm.
type overviewPage struct {
	Problems                      []problem
	Queues, Jobs, Devices, Agents []figure
	// Rate is the recent number of trials recorded per second; negative if unknown.
	Rate   float64
	Trials float64
	Open   []jobRow
}

func (s *Site) overview(w http.ResponseWriter, r *http.Request) error {
	listed, err := s.jobs.ListJobs(r.Context(), &tilthv1.ListJobsRequest{States: openStates, PageSize: 20})
	if err != nil {
		return err
	}
	families := s.gather()
	p := overviewPage{
		Queues: families.figures("queue_depth", "kind", "class"), Jobs: families.figures("open_jobs", "state"),
		Devices: families.figures("devices", "state"), Agents: families.figures("agents", "kind", "state"),
		Open: rows(listed.GetJobs()), Trials: families.where("trials_total", "", ""),
	}
	p.Rate = s.history.rate("trials_total", p.Trials, s.Now())
	p.Problems = s.problems(view{now: families, at: s.Now(), jobs: listed.GetJobs(), notReady: s.Checks.Ready(r.Context())})
	return s.render(w, r, http.StatusOK, "overview", layout{Title: "Overview", Section: "overview", Live: LivePath, Page: p})
}

// metrics maps names without prefix to the tracker's metrics.
type metrics map[string]*dto.MetricFamily

// gather returns the metrics. It logs and omits those that cannot be read.
func (s *Site) gather() metrics {
	out := metrics{}
	if s.Metrics == nil {
		return out
	}
	families, err := s.Metrics.Gather()
	for _, f := range families {
		out[strings.TrimPrefix(f.GetName(), "tilth_tracker_")] = f
	}
	if err != nil {
		s.Logger.Warn("metrics not gathered", "error", err)
	}
	return out
}

func value(m *dto.Metric) float64 {
	return m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()
}

// figures returns the nonzero values of a metric, named by their labels.
func (m metrics) figures(name string, labels ...string) (out []figure) {
	for _, one := range m[name].GetMetric() {
		var parts []string
		for _, label := range labels {
			if of := labelOf(one, label); of != "" {
				parts = append(parts, of)
			}
		}
		if v := value(one); v != 0 {
			out = append(out, figure{strings.Join(parts, " "), v})
		}
	}
	slices.SortFunc(out, func(a, b figure) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// only returns the value of a metric with a single series; is reports whether it exists.
func (m metrics) only(name string) (v float64, is bool) {
	for _, one := range m[name].GetMetric() {
		return value(one), true
	}
	return 0, false
}

// where sums the series of a metric whose label has the prefix; an empty prefix matches all.
func (m metrics) where(name, label, prefix string) (total float64) {
	for _, one := range m[name].GetMetric() {
		if strings.HasPrefix(labelOf(one, label), prefix) {
			total += value(one)
		}
	}
	return total
}

// max returns the largest sum of where over all shards.
func (m metrics) max(name, label, prefix string) (largest float64) {
	byShard := map[string]float64{}
	for _, one := range m[name].GetMetric() {
		if strings.HasPrefix(labelOf(one, label), prefix) {
			byShard[labelOf(one, "shard")] += value(one)
		}
	}
	for _, total := range byShard {
		largest = max(largest, total)
	}
	return largest
}

// labelOf returns the value of a metric's label, or "".
func labelOf(m *dto.Metric, label string) string {
	for _, pair := range m.GetLabel() {
		if pair.GetName() == label {
			return pair.GetValue()
		}
	}
	return ""
}

// slower counts a histogram's samples, and those above a limit, to the precision of its buckets.
func (m metrics) slower(name string, limit float64) (all, slow float64) {
	for _, one := range m[name].GetMetric() {
		h := one.GetHistogram()
		all += float64(h.GetSampleCount())
		within := uint64(0)
		for _, b := range h.GetBucket() {
			if within = b.GetCumulativeCount(); b.GetUpperBound() >= limit {
				break
			}
		}
		slow += float64(h.GetSampleCount() - within)
	}
	return all, slow
}
