package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tilth-dev/tilth/tracker/state"
)

// shownJobs bounds the jobs with individual metrics. The oldest open jobs come first.
const shownJobs = 200

// newJobCollector returns the collector of the progress of open jobs. Ended jobs have no metrics, which bounds the
// number of series.
func newJobCollector(from Sources) prometheus.Collector {
	type F = []state.JobFigures
	byJob := func(name, help string, value func(state.JobFigures) (float64, bool)) family[F] {
		return gauges("job_"+name, help, []string{"job", "name"}, func(jobs F, emit func(float64, ...string)) {
			for _, j := range jobs {
				if n, known := value(j); known {
					emit(n, j.ID, j.Name)
				}
			}
		})
	}
	return &collector[F]{func() F { return from.Jobs(shownJobs) }, []family[F]{
		byJob("best_seconds", "Latency of an open job's model with the best schedules so far; absent until every task has a schedule.",
			func(j state.JobFigures) (float64, bool) { return j.BestSeconds, j.Without == 0 }),
		byJob("trials", "Trials recorded of an open job.", func(j state.JobFigures) (float64, bool) { return float64(j.Trials), true }),
		byJob("tasks_without_best", "Tasks of an open job without a verified trial.",
			func(j state.JobFigures) (float64, bool) { return float64(j.Without), true }),
	}}
}
