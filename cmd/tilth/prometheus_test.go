package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// prometheus is a Prometheus server with the configuration of deploy/prometheus.
type prometheus struct{ address string }

// hasSeen waits until Prometheus has scraped the whole farm. The job may have ended since.
func (p *prometheus) hasSeen(ctx context.Context, t *testing.T) {
	for _, query := range []string{
		`up{job="tracker"} == 1`, `up{job="tuner"} == 1`, `up{job="builder"} == 1`, `up{job="runner"} == 1`,
		`tilth_agent_connected{job="runner"} == 1`, `sum(tilth_tracker_trials_total) > 0`,
		`max_over_time(tilth_tracker_job_best_seconds[1h]) > 0`,
	} {
		p.await(ctx, t, query)
	}
	var rules struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	p.ask(ctx, t, "/api/v1/rules", &rules)
	n := 0
	for _, g := range rules.Data.Groups {
		for _, r := range g.Rules {
			if n++; r.Health == "err" {
				t.Errorf("rule %s: %s", r.Name, r.LastError)
			}
		}
	}
	if n == 0 {
		t.Error("Prometheus has no rules")
	}
}

// startPrometheus starts Prometheus with the shipped configuration, adapted to the farm's addresses and files.
func (f *meteredFarm) startPrometheus(ctx context.Context, t *testing.T) *prometheus {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &prometheus{address: free.Addr().String()}
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	f.writeConfig(t, config, p.address)
	c := exec.CommandContext(ctx, "prometheus", "--config.file", config, "--storage.tsdb.path", filepath.Join(dir, "data"),
		"--web.listen-address", p.address, "--log.level", "warn")
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		if log.Close(); t.Failed() {
			said, _ := os.ReadFile(log.Name())
			t.Logf("Prometheus said:\n%s", said)
		}
	})
	return p
}

// writeConfig writes the shipped configuration with the farm's addresses and files.
func (f *meteredFarm) writeConfig(t *testing.T, path, own string) {
	t.Helper()
	shipped := filepath.Join("..", "..", "deploy", "prometheus")
	text, err := os.ReadFile(filepath.Join(shipped, "prometheus.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	alerts, err := filepath.Abs(filepath.Join(shipped, "alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	config["rule_files"] = []string{alerts}
	config["global"] = map[string]any{"scrape_interval": "1s", "evaluation_interval": "1s"}
	for _, job := range config["scrape_configs"].([]any) {
		job := job.(map[string]any)
		target, is := f.pages[job["job_name"].(string)]
		if !is {
			target = own
		}
		delete(job, "dns_sd_configs")
		job["static_configs"] = []any{map[string]any{"targets": []string{target}}}
		if job["tls_config"] != nil {
			job["tls_config"].(map[string]any)["ca_file"] = f.path("certs/ca.crt")
			job["authorization"].(map[string]any)["credentials_file"] = f.path("metrics.token")
		}
	}
	if text, err = yaml.Marshal(config); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// ask queries Prometheus and decodes its answer. It returns false without an answer.
func (p *prometheus) ask(ctx context.Context, t *testing.T, path string, into any) bool {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return json.NewDecoder(response.Body).Decode(into) == nil
}

// await waits until a query has a result.
func (p *prometheus) await(ctx context.Context, t *testing.T, query string) {
	t.Helper()
	poll := time.NewTicker(200 * time.Millisecond)
	defer poll.Stop()
	for {
		var answer struct {
			Data struct{ Result []json.RawMessage }
		}
		if p.ask(ctx, t, "/api/v1/query?query="+url.QueryEscape(query), &answer) && len(answer.Data.Result) > 0 {
			return
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			t.Fatalf("Prometheus never saw %s", query)
		}
	}
}
