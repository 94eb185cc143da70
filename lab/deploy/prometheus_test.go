package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// prometheus is a client of a Prometheus server.
type prometheus struct {
	base string
}

// ask queries the API and decodes the data of its answer.
func (p *prometheus) ask(ctx context.Context, path string, data any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+path, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s: %s: %w", path, response.Status, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", path, answer.Error)
	}
	return nil
}

// scrapeInterval is the interval in prometheus.yml and in Grafana's data source.
const scrapeInterval = 15 * time.Second

// points returns the number of values of a panel's query between since and now, queried like Grafana. It only counts
// numbers, because Grafana shows no others.
func (p *prometheus) points(ctx context.Context, query string, since time.Time) (n int, err error) {
	// Grafana's rule is four scrapes.
	query = everything.Replace(query)
	values := url.Values{"query": {query}, "step": {scrapeInterval.String()}}
	values.Set("start", strconv.FormatInt(since.Unix(), 10))
	values.Set("end", strconv.FormatInt(time.Now().Unix(), 10))
	var data struct{ Result []struct{ Values [][2]any } }
	if err := p.ask(ctx, "/api/v1/query_range?"+values.Encode(), &data); err != nil {
		return 0, err
	}
	for _, series := range data.Result {
		for _, v := range series.Values {
			if v[1] != "NaN" {
				n++
			}
		}
	}
	return n, nil
}

// seesTheFarm waits until every target in prometheus.yml is scraped. It fails if a rule cannot be evaluated.
func (p *prometheus) seesTheFarm(ctx context.Context, t *testing.T, targets map[string]int) {
	t.Helper()
	for job, want := range targets {
		eventually(ctx, t, func() error {
			var data struct{ Result []json.RawMessage }
			query := fmt.Sprintf("up{job=%q} == 1", job)
			err := p.ask(ctx, "/api/v1/query?query="+url.QueryEscape(query), &data)
			if err == nil && len(data.Result) != want {
				err = fmt.Errorf("%s has %d series, want %d", query, len(data.Result), want)
			}
			return err
		})
	}
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	if err := p.ask(ctx, "/api/v1/rules", &data); err != nil || len(data.Groups) == 0 {
		t.Errorf("Prometheus has no rules: %v", err)
	}
	for _, g := range data.Groups {
		for _, r := range g.Rules {
			if r.Health == "err" {
				t.Errorf("rule %s: %s", r.Name, r.LastError)
			}
		}
	}
}

// eventually retries until try succeeds.
func eventually(ctx context.Context, t *testing.T, try func() error) {
	t.Helper()
	poll := time.NewTicker(500 * time.Millisecond)
	defer poll.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			t.Fatalf("%v: %v", context.Cause(ctx), err)
		}
	}
}

// panelQueries maps the queries of the dashboard to their panels.
func panelQueries(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy", "grafana", "dashboards", "farm.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	queries := map[string]string{}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			queries[target.Expr] = p.Title
		}
	}
	return queries
}

// silent lists queries without data in an undisturbed job.
var silent = map[string]string{
	`count by (job) (tilth_agent_connected{job=~"$job", instance=~"$instance"} == 0)`: "every agent has its tracker",
	`1 + tilth_tracker_device_drift_ratio{instance=~"$instance", device=~"$device"}`:  "a reference is learnt over more than one job",
}

// showsPanels waits until each query of the dashboard has data since a time. Silent queries must only be valid.
func (p *prometheus) showsPanels(ctx context.Context, t *testing.T, since time.Time) {
	t.Helper()
	for query, panel := range panelQueries(t) {
		eventually(ctx, t, func() error {
			n, err := p.points(ctx, query, since)
			if err == nil && n == 0 && silent[query] == "" {
				err = fmt.Errorf("the panel %q shows nothing of %s", panel, query)
			}
			return err
		})
	}
}
