package tracker_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker"
)

func TestMetricsFollowAJob(t *testing.T) {
	registry := prometheus.NewRegistry()
	f := newFarm(t, tracker.Config{Registerer: registry})
	work := spec("conv", "pool")
	work.Tasks[1].Weight = 3
	job := f.submit("r1", work)
	tuner := f.mustLease(f.tuner())
	builder, runner := f.builder(), f.runner()
	measure := func(task uint32, proposal uint64, name string, seconds float64) {
		t.Helper()
		f.propose(tuner.GetLease(), proposal, task, name)
		f.reportBuild(f.buildReport(f.mustLease(builder)))
		w := f.mustLease(runner)
		f.report(w.GetLease(), ok(w.GetMeasure().GetCandidates()[0], seconds))
	}
	expect := func(present bool, lines ...string) {
		t.Helper()
		text := scrape(registry)
		for _, line := range lines {
			if strings.Contains(text, line) != present {
				t.Errorf("metrics with %q: %v, want %v", line, !present, present)
			}
		}
	}
	label := `{job="` + job.GetId() + `",name="resnet18"} `

	measure(0, 0, "a", 0.5)
	expect(true, "tilth_tracker_job_tasks_without_best"+label+"1\n", "tilth_tracker_job_trials"+label+"1\n")
	expect(false, "tilth_tracker_job_best_seconds{")
	measure(1, 1, "b", 0.25)
	expect(true, "tilth_tracker_job_best_seconds"+label+"1.25\n")
	must[*tilthv1.FinishJobResponse](t)(f.search.FinishJob(t.Context(), &tilthv1.FinishJobRequest{
		Lease: tuner.GetLease(), State: tilthv1.JobState_JOB_STATE_DONE,
	}))
	expect(false, "tilth_tracker_job_")
	expect(true,
		`tilth_tracker_queue_wait_seconds_count{kind="builder"} 2`, `tilth_tracker_queue_wait_seconds_count{kind="tuner"} 1`,
		`tilth_tracker_lease_held_seconds_count{kind="runner"} 2`, `tilth_tracker_calls_total{call="Join",code="OK"} 3`,
		`tilth_tracker_call_seconds_count{call="ReportBuild"} 2`, `tilth_tracker_dead_letters_total{error="farm_infra"} 0`,
	)
	expect(false, `call="LeaseWork",le=`, "tilth_tracker_fsync_seconds_count 0\n", "tilth_tracker_disk_free_bytes 0\n")
}

// scrape returns the metrics in Prometheus' format.
func scrape(registry *prometheus.Registry) string {
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	return w.Body.String()
}
