package tracker

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// shownJobs bounds the jobs that have metrics of their own: of more open ones, the oldest do.
const shownJobs = 200

// jobCollector tells how far open jobs are. What ended has no metrics, so that they stay few.
type jobCollector struct {
	tracker            *Tracker
	best, trials, left *prometheus.Desc
}

func newJobCollector(t *Tracker) *jobCollector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("tilth_tracker_job_"+name, help, []string{"job", "name"}, nil)
	}
	return &jobCollector{
		tracker: t,
		best:    desc("best_seconds", "Latency of an open job's model with the best schedules so far; absent until each of its tasks has one."),
		trials:  desc("trials", "Trials recorded of an open job."),
		left:    desc("tasks_without_best", "Tasks of an open job of which no trial has been right so far."),
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
	for _, s := range c.tracker.jobSums() {
		gauge := func(d *prometheus.Desc, value float64) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, s.id, s.name)
		}
		gauge(c.trials, float64(s.trials))
		gauge(c.left, float64(s.without))
		if s.without == 0 {
			gauge(c.best, s.bestSeconds)
		}
	}
}

// jobSum is an open job in figures.
type jobSum struct {
	id, name        string
	trials, without int
	bestSeconds     float64 // of the tasks that have a best, by their weights
}

// jobSums are those of the oldest open jobs.
func (t *Tracker) jobSums() []jobSum {
	t.mu.Lock()
	defer t.mu.Unlock()
	oldest := make([]*job, 0, len(t.jobs))
	for _, j := range t.jobs {
		oldest = append(oldest, j)
	}
	slices.SortFunc(oldest, func(a, b *job) int { return strings.Compare(a.id, b.id) })
	sums := make([]jobSum, 0, min(shownJobs, len(oldest)))
	for _, j := range oldest[:cap(sums)] {
		sums = append(sums, j.sum())
	}
	return sums
}

func (j *job) sum() jobSum {
	s := jobSum{id: j.id, name: j.spec.GetName()}
	for k, p := range j.progress {
		s.trials += int(p.GetTrials())
		if p.GetBestSeconds() == 0 {
			s.without++
		}
		s.bestSeconds += j.spec.GetTasks()[k].GetWeight() * p.GetBestSeconds()
	}
	return s
}
