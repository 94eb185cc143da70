package deploy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	promlabels "github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

// checkQuery parses a query and checks its metrics against docs/metrics.md, which another test compares with a farm's
// metrics.
func checkQuery(t *testing.T, where, query string, known map[string]bool) {
	t.Helper()
	query = strings.ReplaceAll(query, "$__rate_interval", "1m")
	expr, err := parser.ParseExpr(query)
	if err != nil {
		t.Errorf("%s: %s: %v", where, query, err)
		return
	}
	for _, selectors := range parser.ExtractSelectors(expr) {
		if name := metricName(selectors); !known[name] {
			t.Errorf("%s asks for %q, which nobody exports", where, name)
		}
	}
}

func metricName(selectors []*promlabels.Matcher) string {
	for _, s := range selectors {
		if s.Name == promlabels.MetricName {
			return s.Value
		}
	}
	return ""
}

func TestDashboardAsksForMetricsThatExist(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "deploy", "grafana", "dashboards", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("dashboards: %v, %v", files, err)
	}
	known := documented(t)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var dashboard struct {
			UID, Title string
			Panels     []struct {
				ID          int
				Type, Title string
				Datasource  struct{ UID string }
				Targets     []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(text, &dashboard); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		seen := map[int]bool{}
		for _, p := range dashboard.Panels {
			if seen[p.ID] {
				t.Errorf("two panels of %s have the number %d", dashboard.Title, p.ID)
			}
			seen[p.ID] = true
			if p.Type != "row" && (len(p.Targets) == 0 || p.Datasource.UID != "prometheus") {
				t.Errorf("panel %q shows nothing of Prometheus", p.Title)
			}
			for _, target := range p.Targets {
				checkQuery(t, p.Title, target.Expr, known)
			}
		}
	}
}

func TestAlertsAskForMetricsThatExist(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "deploy", "prometheus", "alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	known := documented(t)
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			checkQuery(t, rule.Alert, rule.Expr, known)
		}
	}
}
