package deploy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	promlabels "github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

// everything replaces Grafana's variables as it does while nothing is chosen.
var everything = strings.NewReplacer("$__rate_interval", "1m", "$job", ".*", "$instance", ".*", "$device", ".*")

// checkQuery parses a query and checks its metrics against docs/metrics.md, which another test compares with a farm's
// metrics.
func checkQuery(t *testing.T, where, query string, known map[string]bool) {
	t.Helper()
	query = everything.Replace(query)
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

// checkLink checks that a link leads to a page of the documentation, and to one of its sections if it names one.
func checkLink(t *testing.T, where, link string) {
	t.Helper()
	page, section, _ := strings.Cut(strings.TrimPrefix(link, "https://github.com/tilth-dev/tilth/blob/main/"), "#")
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
	if err != nil {
		t.Errorf("%s links to %s: %v", where, link, err)
		return
	}
	for line := range strings.Lines(string(text)) {
		title, is := strings.CutPrefix(strings.TrimLeft(strings.TrimSpace(line), "#"), " ")
		if is && strings.ReplaceAll(strings.ToLower(title), " ", "-") == section {
			return
		}
	}
	if section != "" {
		t.Errorf("%s links to %s, which has no such section", where, link)
	}
}

// TestDashboardsExplainAndFilterTheirPanels checks the variables, and that each panel obeys them, has a description
// and links to its documentation.
func TestDashboardsExplainAndFilterTheirPanels(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "deploy", "grafana", "dashboards", "farm.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Templating struct {
			List []struct {
				Name, Query, AllValue string
				IncludeAll            bool
			}
		}
		Links  []struct{ URL string }
		Panels []struct {
			Type, Title, Description string
			Links                    []struct{ URL string }
			Targets                  []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, v := range dashboard.Templating.List {
		names = append(names, v.Name)
		if !v.IncludeAll || v.AllValue != ".*" || !strings.HasPrefix(v.Query, "label_values(") {
			t.Errorf("the variable is %+v, want one of label values with all of them", v)
		}
	}
	if want := []string{"job", "instance", "device"}; !slices.Equal(names, want) {
		t.Errorf("the variables are %q, want %q", names, want)
	}
	for _, l := range dashboard.Links {
		checkLink(t, "the dashboard", l.URL)
	}
	whole := ""
	for _, p := range dashboard.Panels {
		if p.Type == "row" {
			continue
		}
		if !strings.HasSuffix(p.Description, ".") || len(p.Links) == 0 {
			t.Errorf("panel %q has the description %q and %d links", p.Title, p.Description, len(p.Links))
		}
		for _, l := range p.Links {
			checkLink(t, p.Title, l.URL)
		}
		for _, target := range p.Targets {
			whole += target.Expr
			expr, err := parser.ParseExpr(everything.Replace(target.Expr))
			if err != nil {
				t.Fatal(err)
			}
			if n := len(parser.ExtractSelectors(expr)); strings.Count(target.Expr, `instance=~"$instance"`) != n {
				t.Errorf("%s: %s does not filter its %d metrics by instance", p.Title, target.Expr, n)
			}
		}
	}
	for _, name := range names {
		if !strings.Contains(whole, `=~"$`+name+`"`) {
			t.Errorf("no panel obeys the variable %s", name)
		}
	}
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
