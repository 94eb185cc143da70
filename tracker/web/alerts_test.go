package web

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// rule is an alerting rule of Prometheus.
type rule struct {
	Alert, Expr, For string
	Annotations      struct {
		Runbook string `yaml:"runbook_url"`
	}
}

func rules(t *testing.T) (out []rule) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "prometheus", "alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		out = append(out, g.Rules...)
	}
	return out
}

var product = regexp.MustCompile(`(\d+) \* (\d+)`)
var number = regexp.MustCompile(`[^a-z_]([0-9.]+(e[0-9]+)?)`)

// numbers returns the numbers in an expression, with products evaluated.
func numbers(expr string) (out []float64) {
	for _, m := range product.FindAllStringSubmatch(expr, -1) {
		a, _ := strconv.ParseFloat(m[1], 64)
		b, _ := strconv.ParseFloat(m[2], 64)
		out = append(out, a*b)
	}
	for _, m := range number.FindAllStringSubmatch(expr, -1) {
		v, _ := strconv.ParseFloat(m[1], 64)
		out = append(out, v)
	}
	return out
}

// TestFirstPagesAlertsAreThoseOfPrometheus compares names, metrics, limits, windows, durations and runbooks.
// Alerts that the tracker cannot evaluate must be listed as such.
func TestFirstPagesAlertsAreThoseOfPrometheus(t *testing.T) {
	known := map[string]alert{}
	for _, a := range alerts {
		known[a.Name] = a
	}
	all := rules(t)
	if len(all) != len(alerts)+len(notEvaluated) {
		t.Errorf("Prometheus has %d alerts, the page knows %d, and %d that it cannot evaluate", len(all), len(alerts), len(notEvaluated))
	}
	for _, r := range all {
		a, is := known[r.Alert]
		if notEvaluated[r.Alert] != "" && !is {
			continue
		}
		if !is {
			t.Errorf("%s is unknown", r.Alert)
			continue
		}
		if got := (problem{Alert: a.Name}).Runbook(); got != r.Annotations.Runbook {
			t.Errorf("%s: the runbook is at %s, not %s", a.Name, r.Annotations.Runbook, got)
		}
		lasts, err := model.ParseDuration(cmp.Or(r.For, "0s"))
		if err != nil || time.Duration(lasts) != a.For {
			t.Errorf("%s must last %s there and %s here", a.Name, r.For, a.For)
		}
		if a.Window > 0 && !strings.Contains(r.Expr, "["+model.Duration(a.Window).String()+"]") {
			t.Errorf("%s looks at %s: %s", a.Name, a.Window, r.Expr)
		}
		if len(a.Metrics) > 0 && !slices.Contains(numbers(r.Expr), a.Limit) {
			t.Errorf("%s: %v is no limit in %s", a.Name, a.Limit, r.Expr)
		}
		for _, m := range a.Metrics {
			if !strings.Contains(r.Expr, "tilth_tracker_"+m) {
				t.Errorf("%s does not look at %s: %s", a.Name, m, r.Expr)
			}
		}
		if a.Name == "TilthJobsCannotRun" && !strings.Contains(r.Expr, `"`+reasons+`"`) {
			t.Errorf("%s has other reasons: %s", a.Name, r.Expr)
		}
	}
}

// at returns metrics from lines with shortened names.
func at(t *testing.T, lines ...string) metrics {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(strings.Join(lines, "\n") + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// TestAlertsHoldWhenSomethingIsWrong checks a positive and a negative case of each alert.
func TestAlertsHoldWhenSomethingIsWrong(t *testing.T) {
	now := time.Unix(1e9, 0)
	waits := []*tilthv1.Job{{Id: "job-1", Spec: &tilthv1.JobSpec{Name: "net"}, Wait: &tilthv1.Wait{Message: "no device", NothingCanRun: true}}}
	const disk = "# TYPE fsync_seconds histogram\n"
	for name, c := range map[string]struct {
		before, well, wrong []string
		jobs                []*tilthv1.Job
		notReady            error
		want                string
	}{
		"TilthTrackerDown":      {notReady: errors.New("the store is away"), want: "not ready: the store is away"},
		"TilthDiskNearlyFull":   {well: []string{"disk_free_bytes 3e9"}, wrong: []string{"disk_free_bytes 1e9"}, want: "954 MiB"},
		"TilthArtifactsAway":    {well: []string{"artifacts_away 0"}, wrong: []string{"artifacts_away 1"}, want: "object store"},
		"TilthStoreAway":        {well: []string{"store_away 0"}, wrong: []string{"store_away 1"}, want: "database"},
		"TilthArtifactsDamaged": {before: []string{`artifacts_dropped_total{reason="damaged"} 2`}, well: []string{`artifacts_dropped_total{reason="damaged"} 2`, `artifacts_dropped_total{reason="room"} 9`}, wrong: []string{`artifacts_dropped_total{reason="damaged"} 3`}, want: "last day: 1"},
		"TilthStoreDamaged":     {well: []string{"store_damaged_rows_total 0"}, wrong: []string{"store_damaged_rows_total 4"}, want: ": 4"},
		"TilthBackupOld": {well: []string{"backup_last_success_timestamp_seconds 0", "backup_interval_seconds 0"},
			wrong: []string{"backup_last_success_timestamp_seconds 999990000", "backup_interval_seconds 3600"}, want: "2 h ago"},
		"TilthTrackerOverloaded":  {before: []string{`refused_total{limit="load_calls"} 5`}, well: []string{`refused_total{limit="load_calls"} 5`, `refused_total{limit="quota_jobs"} 5`}, wrong: []string{`refused_total{limit="load_calls"} 7`}, want: "reached: 2"},
		"TilthCallsRefused":       {well: []string{`calls_refused_total{code="x"} 100`}, wrong: []string{`calls_refused_total{code="x"} 101`}, want: "101"},
		"TilthCertificateExpires": {well: []string{"certificate_expiry_timestamp_seconds 1002000000"}, wrong: []string{"certificate_expiry_timestamp_seconds 1000864000"}, want: "in 10 d"},
		"TilthIssuerAway":         {well: []string{"issuer_keys_timestamp_seconds 999999000"}, wrong: []string{"issuer_keys_timestamp_seconds 999990000"}, want: "2 h ago"},
		"TilthWorkWaits": {before: []string{`leases_granted_total{kind="builder"} 3`}, well: []string{`leases_granted_total{kind="builder"} 4`, `queue_depth{kind="builder",class="gcc"} 2`},
			wrong: []string{`leases_granted_total{kind="builder"} 3`, `queue_depth{kind="builder",class="gcc"} 2`}, want: "a builder of class gcc"},
		"TilthJobsCannotRun": {well: []string{`waiting_jobs{reason="turn"} 3`}, wrong: []string{`waiting_jobs{reason="no_device"} 1`}, jobs: waits, want: "net is waiting: no device"},
		"TilthDeadLetters":   {before: []string{`dead_letters_total{error="crash"} 3`}, well: []string{`dead_letters_total{error="crash"} 3`}, wrong: []string{`dead_letters_total{error="crash"} 4`}, want: "after crash: 1"},
		"TilthTrialsFail": {before: []string{`trials_total{error="crash"} 3`}, well: []string{`trials_total{error="crash"} 3`, `trials_total{error="none"} 9`},
			wrong: []string{`trials_total{error="crash"} 6`, `trials_total{error="none"} 9`}, want: "25 %"},
		"TilthOutage":             {well: []string{"outage_silent_agents 0"}, wrong: []string{`outage_silent_agents{shard="0"} 5`, `outage_silent_agents{shard="1"} 4`}, want: ": 5"},
		"TilthLeasesExpire":       {well: []string{`leases_expired_total{kind="runner"} 3`}, wrong: []string{`leases_expired_total{kind="runner"} 4`}, want: "leases of a runner"},
		"TilthDevicesQuarantined": {well: []string{`devices{state="ready"} 3`}, wrong: []string{`devices{state="quarantined",shard="0"} 1`, `devices{state="quarantined",shard="2"} 2`}, want: ": 2"},
		"TilthDevicesWarned":      {well: []string{"warned_devices 0"}, wrong: []string{`warned_devices{shard="0"} 1`, `warned_devices{shard="1"} 1`}, want: ": 1"},
		"TilthDiskSlow": {
			well:  []string{disk + `fsync_seconds_bucket{le="0.2"} 995`, `fsync_seconds_bucket{le="+Inf"} 1000`, "fsync_seconds_sum 1", "fsync_seconds_count 1000"},
			wrong: []string{disk + `fsync_seconds_bucket{le="0.2"} 980`, `fsync_seconds_bucket{le="+Inf"} 1000`, "fsync_seconds_sum 1", "fsync_seconds_count 1000"}, want: "2 %"},
	} {
		judge := func(lines []string, jobs []*tilthv1.Job, notReady error) (found []problem) {
			s := &Site{}
			s.history.notes = []note{{now.Add(-30 * time.Hour), at(t, c.before...)}}
			return s.problems(view{now: at(t, lines...), at: now, jobs: jobs, notReady: notReady})
		}
		if got := judge(c.well, nil, nil); len(got) != 0 {
			t.Errorf("%s: all is well, and there is %+v", name, got)
		}
		if got := judge(c.wrong, c.jobs, c.notReady); len(got) != 1 || got[0].Alert != name || !strings.Contains(got[0].Text, c.want) {
			t.Errorf("%s: there is %+v, want %q", name, got, c.want)
		}
	}
}

func TestAlertIsPendingUntilItHasLasted(t *testing.T) {
	s, now := &Site{}, time.Unix(1e9, 0)
	full, empty := at(t, "disk_free_bytes 1e9"), at(t, "disk_free_bytes 9e9")
	for i, step := range []struct {
		after   time.Duration
		now     metrics
		want    int
		pending bool
	}{{0, full, 1, true}, {4 * time.Minute, full, 1, true}, {time.Minute, full, 1, false}, {time.Minute, empty, 0, false}, {time.Minute, full, 1, true}} {
		now = now.Add(step.after)
		got := s.problems(view{now: step.now, at: now})
		if len(got) != step.want || len(got) == 1 && got[0].Pending != step.pending {
			t.Errorf("step %d: %+v", i, got)
		}
	}
}

// TestCounterHistoryIsBounded checks that a week of samples uses no more memory than a day, and that the last hour is
// exact.
func TestCounterHistoryIsBounded(t *testing.T) {
	h, now := &history{}, time.Unix(1e9, 0)
	for range 7 * 24 * 60 {
		now = now.Add(noteEvery)
		h.note(metrics{}, now)
	}
	if n := len(h.notes); n > maxNotes || n < 100 {
		t.Errorf("there are %d notes, want at most %d", n, maxNotes)
	}
	for _, age := range []time.Duration{time.Minute, 15 * time.Minute, 30 * time.Minute, 24 * time.Hour} {
		i := slices.IndexFunc(h.notes, func(n note) bool { return now.Sub(n.at) >= age && now.Sub(n.at) <= age+coarseInterval })
		if i < 0 {
			t.Errorf("there is none of %s ago", age)
		}
	}
}
