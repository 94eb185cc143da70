package web

import (
	"bytes"
	"context"
	"embed"
	"html/template"
	"net/http"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/access"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

//go:embed templates
var templateFiles embed.FS

// templates returns the pages' templates, each with the common layout. They are parsed at the first call: most
// commands serve no page.
var templates = sync.OnceValue(func() map[string]*template.Template {
	out := map[string]*template.Template{}
	for _, page := range []string{
		"overview", "jobs", "job", "task", "compare", "devices", "board", "device", "records", "signin", "confirm", "error", "tune",
	} {
		out[page] = template.Must(template.New("layout.html").Funcs(templateFuncs).ParseFS(templateFiles, "templates/layout.html", "templates/knobs.html", "templates/"+page+".html"))
	}
	return out
})

// templateFuncs are the template functions.
var templateFuncs = template.FuncMap{
	"seconds":     humanize.Seconds,
	"ratio":       humanize.Ratio,
	"digest":      humanize.Digest,
	"gflops":      humanize.GFLOPS,
	"jobState":    wire.JobState,
	"deviceState": wire.DeviceState,
	"agentState":  wire.AgentState,
	"errorClass":  wire.ErrorClass,
	"percent":     func(v float64) string { return humanize.Percent(v, 1) },
	"clock":       humanize.Clock,
	"labels":      labelsText,
	"agentKind":   wire.AgentKind,
	"algorithm":   algorithm,
	"hundred":     func(part float64) float64 { return 100 * part },
	"list":        func(l layout, jobs []jobRow) jobsList { return jobsList{l, jobs} },
}

// jobsList is a list of jobs within a page.
type jobsList struct {
	Layout layout
	Jobs   []jobRow
}

// layout is common to all pages.
type layout struct {
	Title string
	// Section is the page's entry in the navigation.
	Section string
	// Live is the URL of the page's change stream; empty without one.
	Live string
	// Who and Role identify the user; empty without authentication. InSession is set if there is a session to end.
	Who, Role string
	InSession bool
	FormToken string
	Now       time.Time
	Page      any
}

// Ago formats the age of a time; the title attribute has the exact instant.
func (l layout) Ago(at interface{ AsTime() time.Time }) template.HTML {
	t := at.AsTime()
	if t.Unix() <= 0 {
		return humanize.Missing
	}
	utc := t.UTC()
	return template.HTML(`<time datetime="` + utc.Format(time.RFC3339) + `" title="` + utc.Format("2006-01-02 15:04:05") + ` UTC">` +
		humanize.Ago(t, l.Now) + `</time>`)
}

// page returns a handler that renders show, or its error.
func (s *Site) page(show func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := checkQuery(r)
		if err == nil {
			err = show(w, r)
		}
		if err != nil {
			s.fail(w, r, err)
		}
	})
}

// checkQuery refuses overlong queries.
func checkQuery(r *http.Request) error {
	if n := len(r.URL.RawQuery); n > maxQueryBytes {
		return status.Errorf(codes.InvalidArgument, "the query has %d bytes, more than the limit of %d", n, maxQueryBytes)
	}
	return nil
}

// render writes a page.
func (s *Site) render(w http.ResponseWriter, r *http.Request, code int, page string, l layout) error {
	id, _ := access.From(r.Context())
	l.Who, l.Role, l.InSession, l.Now = id.Name, string(id.Role), s.Auth.InSession(r), s.Now()
	l.FormToken = s.Auth.FormToken(r)
	var out bytes.Buffer
	if err := templates()[page].Execute(&out, l); err != nil {
		return status.Errorf(codes.Internal, "show the page: %v", err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	if _, err := out.WriteTo(w); err != nil {
		s.Logger.Debug("page not sent", "page", page, "error", err)
	}
	return nil
}

// httpCodes maps gRPC codes to HTTP statuses; others are internal errors.
var httpCodes = map[codes.Code]int{
	codes.InvalidArgument: http.StatusBadRequest, codes.NotFound: http.StatusNotFound, codes.PermissionDenied: http.StatusForbidden,
	codes.Unauthenticated: http.StatusUnauthorized, codes.FailedPrecondition: http.StatusConflict, codes.Unimplemented: http.StatusMethodNotAllowed,
	codes.ResourceExhausted: http.StatusTooManyRequests, codes.Unavailable: http.StatusServiceUnavailable,
}

// fail renders an error as a page.
func (s *Site) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // the client has gone
	}
	code, is := httpCodes[status.Code(err)]
	if !is {
		code = http.StatusInternalServerError
		s.Logger.Warn("page failed", "path", r.URL.Path, "error", err)
	}
	message := status.Convert(err).Message()
	page := map[string]any{"Message": message}
	if err := s.render(w, r, code, "error", layout{Title: http.StatusText(code), Page: page}); err != nil {
		http.Error(w, message, code)
	}
}

// notFound handles unknown paths.
func (s *Site) notFound(_ http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return status.Errorf(codes.Unimplemented, "%s is not for this page", r.Method)
	}
	return status.Error(codes.NotFound, "there is no page of this address")
}

// getJob returns a job.
func (s *Site) getJob(ctx context.Context, id string) (*tilthv1.Job, error) {
	got, err := s.jobs.GetJob(ctx, &tilthv1.GetJobRequest{JobId: id})
	return got.GetJob(), err
}

// tasksOfPage is the number of tasks per page. A job may have thousands.
const tasksOfPage = 200

// part is the range of tasks on a page.
type part struct {
	// First and Last are task numbers, from 1; All is the total.
	First, Last, All int
	// Previous and Next link to adjacent pages; empty at the ends.
	Previous, Next string
}

// partOf returns the requested range, which starts at the first task by default.
func partOf(r *http.Request, all int) (part, error) {
	p := part{First: 1, All: all}
	if text := r.URL.Query().Get("from"); text != "" {
		var err error
		if p.First, err = strconv.Atoi(text); err != nil || p.First < 1 || p.First > max(all, 1) {
			return part{}, status.Errorf(codes.InvalidArgument, "from %q is not the number of a task, from 1 to %d", text, all)
		}
	}
	p.Last = min(all, p.First-1+tasksOfPage)
	at := func(first int) string {
		q := r.URL.Query()
		q.Set("from", strconv.Itoa(first))
		return "?" + q.Encode()
	}
	if p.First > 1 {
		p.Previous = at(max(1, p.First-tasksOfPage))
	}
	if p.Last < all {
		p.Next = at(p.Last + 1)
	}
	return p, nil
}

// search lists pages from a token on until about limit elements match, most were visited, or a page is empty. list
// gets the number of elements that are still wanted. next is the token of the following page, "" after the last.
func search[T any](limit, most int, token string, list func(want int, token string) ([]T, string, error), matches func(T) bool) (found []T, next string, err error) {
	for visited := 0; visited < most && len(found) < limit; {
		var page []T
		if page, token, err = list(limit-len(found), token); err != nil {
			return nil, "", err
		}
		for _, one := range page {
			if matches(one) {
				found = append(found, one)
			}
		}
		if visited += len(page); token == "" || len(page) == 0 {
			break
		}
	}
	return found, token, nil
}

// of returns the elements of all that belong to the part.
func of[T any](p part, all []T) []T { return all[p.First-1 : p.Last] }
