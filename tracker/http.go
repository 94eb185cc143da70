package tracker

import (
	"cmp"
	"html/template"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tilth-dev/tilth/internal/wire/names"
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
	if err := statusPage.Execute(w, map[string]any{"Jobs": jobs.GetJobs(), "Agents": t.withDevices(agents.GetAgents()), "Outage": agents.GetOutage()}); err != nil {
		t.log.Warn("status page not sent", "error", err)
	}
}

// pageAgent is an agent with what is decided of its device.
type pageAgent struct {
	*tilthv1.Agent
	// Shown is its state, Why says what keeps work from it, if anything does.
	Shown, Why string
}

// withDevices adds what is decided of runners' devices, and of agents that rest.
func (t *Tracker) withDevices(agents []*tilthv1.Agent) (out []pageAgent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range agents {
		p := pageAgent{Agent: a, Shown: names.AgentState(a.GetState()), Why: a.GetRestReason()}
		if d := t.devices[a.GetSpec().GetName()]; d != nil && a.GetSpec().GetKind() == tilthv1.AgentKind_AGENT_KIND_RUNNER {
			p.Shown, p.Why = d.page(p.Shown, p.Why)
		}
		out = append(out, p)
	}
	return out
}

// page is how a device is shown beside its runner's state, and why it is given no work; rests is why its runner rests.
func (d *device) page(runner, rests string) (shown, why string) {
	if state := d.state(); state != tilthv1.DeviceState_DEVICE_STATE_READY {
		shown = names.DeviceState(state)
		if runner != names.AgentState(tilthv1.AgentState_AGENT_STATE_IDLE) {
			shown += ", " + runner
		}
		return shown, cmp.Or(d.cordon.GetReason(), d.quarantine.GetReason())
	}
	if d.warning != nil {
		return runner + ", warned", cmp.Or(rests, d.warning.GetReason())
	}
	return runner, rests
}

var statusPage = template.Must(template.New("status").Funcs(template.FuncMap{
	"trials": func(j *tilthv1.Job) (n uint32) {
		for _, p := range j.GetProgress() {
			n += p.GetTrials()
		}
		return n
	},
	"jobState": names.JobState,
	"kind":     names.AgentKind,
}).Parse(`<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><title>Tilth tracker</title>
<style>body{font:15px system-ui,sans-serif;margin:2em}td,th{text-align:left;padding:.2em 1em .2em 0}</style>
<h1>Tilth tracker</h1>
{{with .Outage}}<p><strong>{{.Silent}} of {{.Agents}} agents fell silent at once; they are waited for.</strong></p>{{end}}
<h2>Jobs</h2>
<table><tr><th>Job<th>Name<th>Owner<th>State<th>Tasks<th>Trials<th>Dead letters<th>Reason<th>Waits</tr>
{{range .Jobs}}<tr><td>{{.Id}}<td>{{.Spec.Name}}<td>{{.Spec.Owner}}<td>{{jobState .State}}<td>{{len .Spec.Tasks}}<td>{{trials .}}<td>{{len .DeadLetters}}<td>{{.Reason}}<td>{{with .Wait}}{{.Message}}{{end}}</tr>
{{else}}<tr><td>none</tr>{{end}}</table>
<h2>Agents</h2>
<table><tr><th>Agent<th>Kind<th>State<th>Host<th>Completed<th>Failed<th>Why</tr>
{{range .Agents}}<tr><td>{{.Spec.Name}}<td>{{kind .Spec.Kind}}<td>{{.Shown}}<td>{{.Spec.Host}}<td>{{.Completed}}<td>{{.Failed}}<td>{{.Why}}</tr>
{{else}}<tr><td>none</tr>{{end}}</table>
<p><a href="/metrics">metrics</a> · <a href="/readyz">health</a></p>
</html>
`))
