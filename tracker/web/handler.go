package web

import (
	"context"
	"embed"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Paths that need no session, since the sign-in page uses them, and the path of event streams.
const (
	signInPath = "/signin"
	stylePath  = "/static/style.css"
	iconPath   = "/static/icon.svg"
	// LivePath is the path of streams that announce changes.
	LivePath = "/live"
)

// Public returns the paths that need no session.
func Public() []string {
	return []string{signInPath, stylePath, iconPath, wire.LivePath, wire.ReadyPath}
}

// maxQueryBytes bounds the query of a URL.
const maxQueryBytes = 4 << 10

// Authenticator authenticates and authorizes the users of pages. Errors are gRPC statuses.
type Authenticator interface {
	// SignsIn reports whether users sign in with tokens, InSession whether a request belongs to a session.
	SignsIn() bool
	InSession(r *http.Request) bool
	// Issuer returns the URL of the token issuer, or "".
	Issuer() string
	// SignIn starts a session, SignOut ends it.
	SignIn(w http.ResponseWriter, r *http.Request, token string) error
	SignOut(w http.ResponseWriter, r *http.Request)
	// Valid returns an error if a request's credentials have expired or been revoked.
	Valid(r *http.Request) error
	// HasRole reports whether the caller's role may call a method, May whether the caller may for a job of the owner.
	HasRole(r *http.Request, method string) bool
	May(r *http.Request, method, owner string) bool
	// FormToken returns the token to embed in a form; CheckForm verifies it.
	FormToken(r *http.Request) string
	CheckForm(r *http.Request, token string) error
	// CheckCall refuses a JSON call that changes something and may come from another site.
	CheckCall(r *http.Request) error
}

// Config configures a Site.
type Config struct {
	// Conn leads to the tracker's services. The context of a request identifies the caller.
	Conn grpc.ClientConnInterface
	Auth Authenticator
	// UploadDir returns a folder for files with the suffix .upload that are being received.
	UploadDir func() string
	// Upload stores the file at path as an artifact, on behalf of the caller of the request with the context.
	Upload func(ctx context.Context, role, path string) (*tilthv1.ArtifactRef, error)
	// Checks answer health requests.
	Checks wire.HealthChecks
	// Metrics are served on /metrics and summarized on the overview; nil serves none.
	Metrics prometheus.Gatherer
	Logger  *slog.Logger
	// Now is the wall clock.
	Now func() time.Time
}

//go:embed static
var static embed.FS

// Site serves /metrics, /healthz, /readyz and the pages.
type Site struct {
	Config
	jobs      tilthv1.JobServiceClient
	agents    tilthv1.AgentServiceClient
	devices   tilthv1.DeviceServiceClient
	records   tilthv1.RecordServiceClient
	artifacts tilthv1.ArtifactServiceClient
	follows   follows
	streams   streams
	history   history
	// comparisons limits concurrent requests that read packages.
	comparisons chan struct{}
	// uploads limits concurrent uploads of models.
	uploads chan struct{}
	mux     *http.ServeMux
	api     http.Handler
}

// ServeHTTP implements http.Handler.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// New returns a site. Run must be running for the overview's alerts.
func New(cfg Config) *Site {
	s := &Site{
		Config: cfg,
		jobs:   tilthv1.NewJobServiceClient(cfg.Conn), agents: tilthv1.NewAgentServiceClient(cfg.Conn),
		devices: tilthv1.NewDeviceServiceClient(cfg.Conn), records: tilthv1.NewRecordServiceClient(cfg.Conn), artifacts: tilthv1.NewArtifactServiceClient(cfg.Conn),
		follows: follows{byJob: map[string]*follow{}}, streams: streams{byAsker: map[string]int{}}, api: newAPI(cfg),
		comparisons: make(chan struct{}, maxComparisons), uploads: make(chan struct{}, maxUploads),
	}
	mux := http.NewServeMux()
	if cfg.Metrics != nil {
		mux.Handle("GET /metrics", promhttp.HandlerFor(cfg.Metrics, promhttp.HandlerOpts{
			ErrorHandling: promhttp.ContinueOnError, ErrorLog: slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelWarn),
		}))
	}
	cfg.Checks.Register(mux)
	for path, show := range map[string]func(http.ResponseWriter, *http.Request) error{
		"GET /{$}":                         s.overview,
		"GET /jobs":                        s.listJobs,
		"GET /jobs/{id}":                   s.job,
		"GET /jobs/{id}/tasks/{task}":      s.task,
		"GET /jobs/{id}/actions/{action}":  s.confirmJob,
		"POST /jobs/{id}/actions/{action}": s.actOnJob,
		"GET /jobs/{id}/packages/{number}": s.download,
		"GET " + tunePath:                  s.tuneForm,
		"POST " + tunePath:                 s.tune,
		"GET /compare":                     s.compare,
		"GET /devices":                     s.listDevices,
		"GET /device":                      s.device,
		"GET /device/actions/{action}":     s.confirmDevice,
		"POST /device/actions/{action}":    s.actOnDevice,
		"GET /records":                     s.listRecords,
		"GET " + signInPath:                s.signInForm,
		"POST " + signInPath:               s.signIn,
		"POST /signout":                    s.signOut,
		"GET " + LivePath:                  s.live,
		"/":                                s.notFound,
	} {
		mux.Handle(path, s.page(show))
	}
	files := http.FileServerFS(static)
	mux.HandleFunc("GET /static/{file}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "private, max-age=300")
		files.ServeHTTP(w, r)
	})
	mux.HandleFunc(apiPath, s.callJSON)
	s.mux = mux
	return s
}

// streams counts the open streams by client.
type streams struct {
	mu      sync.Mutex
	open    int
	byAsker map[string]int
}
