package tracker_test

import (
	"bufio"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tilth-dev/tilth/internal/access"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker"
)

// hostile is a name that would run as a script if it were not escaped.
const hostile = `<script>alert("x")</script>' onload='x`

// measured proposes a batch of a job with hostile names, builds a part of it, measures it, and returns the job.
func (f *trackerFarm) measured() *tilthv1.Job {
	f.Helper()
	s := spec("conv "+hostile, "dense")
	s.Name, s.Owner = hostile, hostile
	j := f.submit("hostile", s)
	tuner, builder, runner := f.tuner(), f.builder(), f.join("board/7 "+hostile, tilthv1.AgentKind_AGENT_KIND_RUNNER)
	lease := f.mustLease(tuner).GetLease()
	for task := range uint32(2) {
		f.propose(lease, uint64(task), task, "a", "b", "c")
		report := f.buildReport(f.mustLease(builder), "c")
		report.Outcomes[2].Message = hostile
		f.reportBuild(report)
		work := f.mustLease(runner)
		f.report(work.GetLease(), ok(work.GetMeasure().GetCandidates()[0], 0.002), ok(work.GetMeasure().GetCandidates()[1], 0.001))
	}
	return j
}

// get requests a page from a handler.
func get(pages http.Handler, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	pages.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost"+target, nil))
	return w
}

func TestPagesShowAJobAndEscapeItsNames(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	id := f.measured().GetId()
	pages := f.tracker.HTTPHandler()
	device := "/device?name=" + url.QueryEscape("board/7 "+hostile)
	for target, wants := range map[string][]string{
		"/":                               {"running"},
		"/jobs":                           {"2.00 ms"},
		"/jobs?state=open&model=script":   {"2.00 ms"},
		"/jobs?state=done":                {"No jobs."},
		"/jobs?owner=nobody":              {"No jobs."},
		"/jobs/" + id:                     {"2.00 ms", `class="chart"`, `class="spark"`, "compile_error", "the best so far (trial 1)", "/actions/pause"},
		"/jobs/" + id + "/tasks/0":        {"1.00 ms", `class="chart"`, "trial 1: 1.00 ms; direct; schedule", "failed: compile_error"},
		"/jobs/" + id + "/actions/cancel": {"cannot be resumed", `name="form_token"`},
		"/compare?a=" + id + "&b=" + id:   {"1.00x"},
		"/devices":                        {"board/7", "builder"},
		device:                            {"x86", "/device/actions/cordon"},
		"/records":                        {"1.00 ms", id},
		strings.Replace(device, "?", "/actions/drain?", 1): {"no more work"},
	} {
		w := get(pages, target)
		text := w.Body.String()
		if w.Code != http.StatusOK || strings.Contains(text, hostile) || strings.Contains(text, "<script>") {
			t.Errorf("%s: %d, or something is not escaped\n%s", target, w.Code, text)
		}
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q\n%s", target, want, text)
			}
		}
	}
}

func TestPagesRefuseWhatIsWrong(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	id := f.submit("r", spec("conv")).GetId()
	pages := f.tracker.HTTPHandler()
	for target, want := range map[string]int{
		"/nothing": http.StatusNotFound, "/jobs/job-9": http.StatusNotFound, "/jobs/%00": http.StatusNotFound, "/device": http.StatusNotFound,
		"/device?name=x": http.StatusNotFound, "/jobs/" + id + "/tasks/9": http.StatusNotFound, "/jobs/" + id + "/tasks/-1": http.StatusNotFound,
		"/jobs/" + id + "/tasks/99999999999999999999": http.StatusNotFound, "/jobs/" + id + "/actions/explode": http.StatusNotFound,
		"/jobs?state=mad": http.StatusBadRequest, "/jobs?page=mad": http.StatusBadRequest, "/devices?page=mad": http.StatusBadRequest,
		"/records?page=mad": http.StatusBadRequest, "/jobs?owner=" + strings.Repeat("x", 5000): http.StatusBadRequest,
		"/live?job=none": http.StatusNotFound, "/signin": http.StatusNotFound, "/static/none": http.StatusNotFound,
		"/static/..%2fhandler.go": http.StatusNotFound,
	} {
		if w := get(pages, target); w.Code != want {
			t.Errorf("%s: %d, want %d\n%s", target[:min(len(target), 80)], w.Code, want, w.Body)
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, "MAD"} {
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, httptest.NewRequest(method, "http://localhost/jobs/"+id, nil))
		if w.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, w.Code)
		}
	}
}

// visitor keeps a browser's cookies and submits its forms.
type visitor struct {
	*closed
	client *http.Client
}

func (c *closed) visitor() *visitor {
	jar := must[*cookiejar.Jar](c)(cookiejar.New(nil))
	transport := &http.Transport{}
	c.Cleanup(transport.CloseIdleConnections)
	return &visitor{c, &http.Client{Jar: jar, Transport: transport, Timeout: 30 * time.Second}}
}

func (v *visitor) do(method, target string, form url.Values, headers ...string) (code int, at, text string) {
	v.Helper()
	r := must[*http.Request](v)(http.NewRequestWithContext(v.Context(), method, "http://"+v.web+target, strings.NewReader(form.Encode())))
	r.Header.Set("Accept", "text/html")
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w, err := v.client.Do(r)
	if err != nil {
		v.Fatal(err)
	}
	defer w.Body.Close()
	return w.StatusCode, w.Request.URL.RequestURI(), string(must[[]byte](v)(io.ReadAll(w.Body)))
}

var hidden = regexp.MustCompile(`name="form_token" value="([^"]*)"`)

// formToken returns the token in a page's form.
func (v *visitor) formToken(target string) string {
	v.Helper()
	_, _, text := v.do(http.MethodGet, target, nil)
	found := hidden.FindStringSubmatch(text)
	if found == nil {
		v.Fatalf("%s has no form:\n%s", target, text)
	}
	return html.UnescapeString(found[1])
}

func (v *visitor) signIn(name, next string) (code int, at, text string) {
	v.Helper()
	return v.do(http.MethodPost, "/signin", url.Values{"form_token": {v.formToken("/signin")}, "token": {v.tokens[name]}, "next": {next}})
}

func TestPeopleSignInWithATokenAndActInTheirRole(t *testing.T) {
	c := newClosed(t, false)
	job := must[*tilthv1.Job](t)(c.submit("alice", "r")).GetId()
	pause := "/jobs/" + job + "/actions/pause"
	v := c.visitor()
	v.tokens["nobody"] = "tilth_wrong"
	if _, at, _ := v.do(http.MethodGet, "/jobs?state=open", nil, "Cookie", "tilth_session=forged"); at != "/signin?next=%2Fjobs%3Fstate%3Dopen" {
		t.Errorf("who proves nothing is led to %s", at)
	}
	for name, want := range map[string]int{"nobody": http.StatusUnauthorized, "agent": http.StatusForbidden} {
		if code, _, _ := v.signIn(name, "/"); code != want {
			t.Errorf("%s signs in: %d, want %d", name, code, want)
		}
	}
	for next, want := range map[string]string{"/devices": "/devices", "//evil.example/": "/", "https://evil.example": "/", `/\evil.example`: "/"} {
		if code, at, _ := v.signIn("read-only", next); code != http.StatusOK || at != want {
			t.Errorf("signed in to %s: %d at %s, want %s", next, code, at, want)
		}
	}
	if _, _, text := v.do(http.MethodGet, "/jobs/"+job, nil); !strings.Contains(text, "read-only, read-only") || strings.Contains(text, "/actions/") {
		t.Errorf("a reader sees\n%s", text)
	}
	act := func(v *visitor, target string, want int, headers ...string) {
		t.Helper()
		form := url.Values{"form_token": {v.formToken(target)}, "reason": {"a look"}}
		if code, _, text := v.do(http.MethodPost, target, form, headers...); code != want {
			t.Errorf("%s: %d, want %d\n%s", target, code, want, text)
		}
	}
	act(v, pause, http.StatusForbidden)
	bob, alice := c.visitor(), c.visitor()
	bob.signIn("bob", "/")
	act(bob, pause, http.StatusForbidden) // the job is Alice's
	alice.signIn("alice", "/")
	if code, _, _ := alice.do(http.MethodPost, pause, url.Values{"form_token": {bob.formToken(pause)}}); code != http.StatusForbidden {
		t.Errorf("a form of another session is answered with %d", code)
	}
	act(alice, pause, http.StatusForbidden, "Sec-Fetch-Site", "cross-site")
	act(alice, pause, http.StatusOK)
	if _, _, text := alice.do(http.MethodGet, "/jobs/"+job, nil); !strings.Contains(text, "paused") || !strings.Contains(text, "/actions/resume") {
		t.Errorf("after the pause the page is\n%s", text)
	}
	c.wantAudit("JobService.PauseJob bob PermissionDenied", "JobService.PauseJob alice OK", "Page.SignIn alice OK", "Page.SignIn  Unauthenticated")
	if _, at, _ := alice.do(http.MethodPost, "/signout", url.Values{"form_token": {alice.formToken("/")}}); at != "/signin" {
		t.Errorf("who signs out is led to %s", at)
	}
	if _, at, _ := alice.do(http.MethodGet, "/", nil); !strings.HasPrefix(at, "/signin") {
		t.Errorf("who has signed out sees %s", at)
	}
}

// wantAudit checks the calls in the audit log, with callers and results.
func (c *closed) wantAudit(wants ...string) {
	c.Helper()
	var all []string
	for _, e := range c.entries() {
		all = append(all, strings.Join([]string{e.Verb, e.Who, e.Result}, " "))
	}
	text := strings.Join(all, "\n")
	for _, want := range wants {
		if !strings.Contains(text, want) {
			c.Errorf("the audit log lacks %q:\n%s", want, text)
		}
	}
}

func TestSessionEndsWithItsToken(t *testing.T) {
	c := newClosed(t, false)
	v := c.visitor()
	v.signIn("alice", "/")
	if _, err := access.RevokeTokens(c.path("tokens.json"), func(t access.Token) bool { return t.Name == "alice" }); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, at, _ := v.do(http.MethodGet, "/", nil); strings.HasPrefix(at, "/signin") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the session goes on")
		}
	}
}

func TestGuessesOfTokensAreLimited(t *testing.T) {
	c := newClosed(t, false)
	v := c.visitor()
	form := url.Values{"form_token": {v.formToken("/signin")}, "token": {"tilth_guess"}}
	for range 25 {
		if code, _, _ := v.do(http.MethodPost, "/signin", form); code == http.StatusTooManyRequests {
			return
		}
	}
	t.Error("nobody counts attempts")
}

// TestOpenTrackerTakesNoFormsByName because another site's name may resolve to this machine.
func TestOpenTrackerTakesNoFormsByName(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	pause := "/jobs/" + f.submit("r", spec("conv")).GetId() + "/actions/pause"
	pages := f.tracker.HTTPHandler()
	token := hidden.FindStringSubmatch(get(pages, pause).Body.String())[1]
	for host, want := range map[string]int{"evil.example": http.StatusForbidden, "127.0.0.1:9191": http.StatusSeeOther, "[::1]:9191": http.StatusSeeOther} {
		r := httptest.NewRequest(http.MethodPost, pause, strings.NewReader(url.Values{"form_token": {token}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Host = host
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("by %s: %d, want %d: %s", host, w.Code, want, w.Body)
		}
	}
}

func TestPagesReceiveLiveUpdates(t *testing.T) {
	c := newClosed(t, false)
	job := must[*tilthv1.Job](t)(c.submit("alice", "r")).GetId()
	v := c.visitor()
	v.signIn("alice", "/")
	r := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+path.Join(c.web, "live")+"?job="+job, nil))
	w, err := v.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	lines := bufio.NewScanner(w.Body)
	hear := func(want string) {
		t.Helper()
		for lines.Scan() {
			if lines.Text() == want {
				return
			}
		}
		t.Fatalf("nothing more is heard: %v", lines.Err())
	}
	hear(": changes of this page")
	wantCode(t, "cancel", c.cancel("alice", job), codes.OK, "")
	hear("event: end")
}
