package web

import (
	"cmp"
	"context"
	"html/template"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tilth-dev/tilth/internal/health"
	"github.com/tilth-dev/tilth/internal/wire/names"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Services are those that the page is made of.
type Services interface {
	ListJobs(context.Context, *tilthv1.ListJobsRequest) (*tilthv1.ListJobsResponse, error)
	ListAgents(context.Context, *tilthv1.ListAgentsRequest) (*tilthv1.ListAgentsResponse, error)
	GetDevice(context.Context, *tilthv1.GetDeviceRequest) (*tilthv1.GetDeviceResponse, error)
}

// Config is what is served.
type Config struct {
	Services Services
	// Checks say how the tracker is.
	Checks health.Checks
	// Metrics are served on /metrics; nil = none are.
	Metrics prometheus.Gatherer
	Logger  *slog.Logger
}

// Handler serves /metrics, /healthz, /readyz and, on /, a page that says what is going on.
func Handler(cfg Config) http.Handler {
	mux := http.NewServeMux()
	if cfg.Metrics != nil {
		mux.Handle("GET /metrics", promhttp.HandlerFor(cfg.Metrics, promhttp.HandlerOpts{}))
	}
	cfg.Checks.Register(mux)
	mux.HandleFunc("GET /{$}", cfg.servePage)
	return mux
}

func (cfg Config) servePage(w http.ResponseWriter, r *http.Request) {
	jobs, err := cfg.Services.ListJobs(r.Context(), &tilthv1.ListJobsRequest{Limit: 50})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	agents, err := cfg.Services.ListAgents(r.Context(), &tilthv1.ListAgentsRequest{})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	shown := cfg.withDevices(r.Context(), agents.GetAgents())
	if err := statusPage.Execute(w, map[string]any{"Jobs": jobs.GetJobs(), "Agents": shown, "Outage": agents.GetOutage()}); err != nil {
		cfg.Logger.Warn("status page not sent", "error", err)
	}
}

// pageAgent is an agent with what is decided of its device.
type pageAgent struct {
	*tilthv1.Agent
	// Shown is its state, Why says what keeps work from it, if anything does.
	Shown, Why string
}

// withDevices adds what is decided of runners' devices, and of agents that rest.
func (cfg Config) withDevices(ctx context.Context, agents []*tilthv1.Agent) (out []pageAgent) {
	for _, a := range agents {
		p := pageAgent{Agent: a, Shown: names.AgentState(a.GetState()), Why: a.GetRestReason()}
		if a.GetSpec().GetKind() == tilthv1.AgentKind_AGENT_KIND_RUNNER {
			d, err := cfg.Services.GetDevice(ctx, &tilthv1.GetDeviceRequest{Name: a.GetSpec().GetName()})
			if err == nil { // it may have been forgotten just now
				p.Shown, p.Why = withDevice(d.GetDevice(), p.Shown, p.Why)
			}
		}
		out = append(out, p)
	}
	return out
}

// withDevice is how a device is shown beside its runner's state, and why it is given no work; rests is why its runner
// rests.
func withDevice(d *tilthv1.Device, runner, rests string) (shown, why string) {
	if state := d.GetState(); state != tilthv1.DeviceState_DEVICE_STATE_READY {
		shown = names.DeviceState(state)
		if runner != names.AgentState(tilthv1.AgentState_AGENT_STATE_IDLE) {
			shown += ", " + runner
		}
		return shown, cmp.Or(d.GetCordon().GetReason(), d.GetQuarantine().GetReason())
	}
	if d.GetWarning() != nil {
		return runner + ", warned", cmp.Or(rests, d.GetWarning().GetReason())
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
