package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tilth-dev/tilth/tracker/state"
)

// shownJobs bounds the jobs with individual metrics. The oldest open jobs come first.
const shownJobs = 200

// jobCollector exports the progress of open jobs. Ended jobs have no metrics, which bounds the number of series.
type jobCollector struct {
	jobs               func(limit int) []state.JobFigures
	best, trials, left *prometheus.Desc
}

func newJobCollector(s Sources) *jobCollector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("tilth_tracker_job_"+name, help, []string{"job", "name"}, nil)
	}
	return &jobCollector{
		jobs:   s.Jobs,
		best:   desc("best_seconds", "Latency of an open job's model with the best schedules so far; absent until every task has a schedule."),
		trials: desc("trials", "Trials recorded of an open job."),
		left:   desc("tasks_without_best", "Tasks of an open job without a verified trial."),
	}
}

// Describe implements prometheus.Collector.
func (c *jobCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.best, c.trials, c.left} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *jobCollector) Collect(ch chan<- prometheus.Metric) {
	for _, s := range c.jobs(shownJobs) {
		gauge := func(d *prometheus.Desc, value float64) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, s.ID, s.Name)
		}
		gauge(c.trials, float64(s.Trials))
		gauge(c.left, float64(s.Without))
		if s.Without == 0 {
			gauge(c.best, s.BestSeconds)
		}
	}
}
