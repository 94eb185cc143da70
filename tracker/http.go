package tracker

import (
	"html/template"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tilth-dev/tilth/internal/show"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// HTTPHandler serves /metrics, /healthz, /readyz and, on /, a page that says what is going on.
func (t *Tracker) HTTPHandler() http.Handler {
	mux := http.NewServeMux()
	if gatherer, ok := t.cfg.Registerer.(prometheus.Gatherer); ok {
		mux.Handle("GET /metrics", promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{}))
	}
	t.checks().Register(mux)
	mux.HandleFunc("GET /{$}", t.serveStatus)
	return mux
}

func (t *Tracker) serveStatus(w http.ResponseWriter, r *http.Request) {
	jobs, err := t.ListJobs(r.Context(), &tilthv1.ListJobsRequest{Limit: 50})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	agents, err := t.ListAgents(r.Context(), &tilthv1.ListAgentsRequest{})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := statusPage.Execute(w, map[string]any{"Jobs": jobs.GetJobs(), "Agents": agents.GetAgents(), "Outage": agents.GetOutage()}); err != nil {
		t.log.Warn("status page not sent", "error", err)
	}
}

var statusPage = template.Must(template.New("status").Funcs(template.FuncMap{
	"trials": func(j *tilthv1.Job) (n uint32) {
		for _, p := range j.GetProgress() {
			n += p.GetTrials()
		}
		return n
	},
	"jobState":   show.JobState,
	"agentState": show.AgentState,
	"kind":       show.AgentKind,
}).Parse(`<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><title>Tilth tracker</title>
<style>body{font:15px system-ui,sans-serif;margin:2em}td,th{text-align:left;padding:.2em 1em .2em 0}</style>
<h1>Tilth tracker</h1>
{{with .Outage}}<p><strong>{{.Silent}} of {{.Agents}} agents fell silent at once; they are waited for.</strong></p>{{end}}
<h2>Jobs</h2>
<table><tr><th>Job<th>Name<th>Owner<th>State<th>Tasks<th>Trials<th>Dead letters<th>Reason</tr>
{{range .Jobs}}<tr><td>{{.Id}}<td>{{.Spec.Name}}<td>{{.Spec.Owner}}<td>{{jobState .State}}<td>{{len .Spec.Tasks}}<td>{{trials .}}<td>{{len .DeadLetters}}<td>{{.Reason}}</tr>
{{else}}<tr><td>none</tr>{{end}}</table>
<h2>Agents</h2>
<table><tr><th>Agent<th>Kind<th>State<th>Host<th>Completed<th>Failed<th>Rests</tr>
{{range .Agents}}<tr><td>{{.Spec.Name}}<td>{{kind .Spec.Kind}}<td>{{agentState .State}}<td>{{.Spec.Host}}<td>{{.Completed}}<td>{{.Failed}}<td>{{.RestReason}}</tr>
{{else}}<tr><td>none</tr>{{end}}</table>
<p><a href="/metrics">metrics</a> · <a href="/readyz">health</a></p>
</html>
`))
