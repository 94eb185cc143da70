package tracker_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker"
)

// ask makes a JSON call with the token of the given name, and returns the response's status and body.
func (c *closed) ask(name, method, target, body string, headers ...string) (code int, text string) {
	c.Helper()
	r := must[*http.Request](c)(http.NewRequestWithContext(c.Context(), method, "http://"+c.web+"/api/v1/"+target, strings.NewReader(body)))
	if name != "" {
		r.Header.Set("Authorization", "Bearer "+c.tokens[name])
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	transport := &http.Transport{DisableKeepAlives: true}
	w, err := transport.RoundTrip(r)
	c.check(err)
	defer w.Body.Close()
	return w.StatusCode, string(must[[]byte](c)(io.ReadAll(w.Body)))
}

// TestCallsInJSONPassTheSameGate checks roles, bounds and the audit log, as for gRPC.
func TestCallsInJSONPassTheSameGate(t *testing.T) {
	c := newClosed(t, false)
	job := must[*tilthv1.Job](t)(c.submit("alice", "r")).GetId()
	pause := "jobs/" + job + ":pause"
	for what, call := range map[string]struct {
		who, method, target, body string
		want                      int
		text                      string
	}{
		"nobody":                   {"", "GET", "jobs", "", 401, "wants a token"},
		"an agent":                 {"agent", "GET", "jobs", "", 403, "read-only"},
		"a reader who lists":       {"read-only", "GET", "jobs?pageSize=1", "", 200, job},
		"a reader who shows":       {"read-only", "GET", "jobs/" + job, "", 200, `"state":"JOB_STATE_QUEUED"`},
		"a reader who changes":     {"read-only", "POST", pause, "{}", 403, `"code":7`},
		"another client":           {"bob", "POST", pause, "{}", 403, `"code":7`},
		"an unknown job":           {"bob", "GET", "jobs/job-9", "", 404, `"code":5`},
		"an unknown call":          {"bob", "GET", "nothing", "", 404, `"code":5`},
		"a name with slashes":      {"bob", "GET", "devices/a/b%20c", "", 404, `device \"a/b c\"`},
		"a list of devices":        {"bob", "GET", "devices", "", 200, `"devices":`},
		"a list of agents":         {"bob", "GET", "agents?pageSize=1", "", 200, `"agents":`},
		"a word that is none":      {"alice", "POST", pause, `{"reasons": "x"}`, 400, "reasons"},
		"what is no JSON":          {"alice", "POST", pause, `{`, 400, `"code":3`},
		"a text that is too long":  {"alice", "POST", pause, `{"reason": "` + strings.Repeat("x", 5000) + `"}`, 400, "reason"},
		"a body that is too long":  {"alice", "POST", "jobs", `{"requestId": "` + strings.Repeat("x", 5<<20) + `"}`, 400, "too large"},
		"a query that is too long": {"alice", "GET", "jobs?pageToken=" + strings.Repeat("x", 5000), "", 400, "query"},
		"what only gRPC has":       {"admin", "POST", "backups", "{}", 404, `"code":5`},
	} {
		if code, text := c.ask(call.who, call.method, call.target, call.body); code != call.want || !strings.Contains(strings.ReplaceAll(text, `": `, `":`), call.text) {
			t.Errorf("%s: %d %.300s; want %d, %q", what, code, text, call.want, call.text)
		}
	}
	if code, text := c.ask("alice", "POST", pause, "x=1", "Content-Type", "application/x-www-form-urlencoded"); code != 400 {
		t.Errorf("a form is answered with %d %s", code, text)
	}
	if code, text := c.ask("alice", "POST", pause, `{"reason": "`+"a look"+`"}`, "Sec-Fetch-Site", "cross-site"); code != 403 {
		t.Errorf("another site's call is answered with %d %s", code, text)
	}
	if code, text := c.ask("alice", "POST", pause, `{"reason": "a look"}`); code != 200 || !strings.Contains(text, "PAUSED") {
		t.Errorf("a pause is answered with %d %s", code, text)
	}
	c.wantAudit("JobService.PauseJob bob PermissionDenied", "JobService.PauseJob alice OK")
	v := c.visitor()
	v.signIn("alice", "/")
	if code, _, text := v.do("GET", "/api/v1/jobs/"+job, nil); code != 200 {
		t.Errorf("a session that reads is answered with %d %s", code, text)
	}
	if code, _, text := v.do("POST", "/api/v1/"+pause, url.Values{}, "Content-Type", "application/json"); code != 403 || !strings.Contains(text, "token") {
		t.Errorf("a session that changes something is answered with %d %s", code, text)
	}
}

// TestOpenTrackerTakesNoCallsByName because another site's name may resolve to this machine.
func TestOpenTrackerTakesNoCallsByName(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	target := "/api/v1/jobs/" + f.submit("r", spec("conv")).GetId() + ":pause"
	for host, want := range map[string]int{"evil.example": 403, "127.0.0.1:9191": 200} {
		r := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+host+target, strings.NewReader("{}")))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		if f.tracker.HTTPHandler().ServeHTTP(w, r); w.Code != want {
			t.Errorf("by %s: %d, want %d: %s", host, w.Code, want, w.Body)
		}
	}
}

// TestOpenTrackerServesNoPageByName because another site's name may resolve to this machine, and its page would read
// what the tracker serves. Public names contain a dot.
func TestOpenTrackerServesNoPageByName(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	for host, want := range map[string]int{"evil.example:9191": 403, "127.0.0.1:9191": 200, "[::1]:9191": 200, "localhost": 200, "tracker:9191": 200} {
		for _, path := range []string{"/", "/metrics", "/api/v1/jobs", "/api/v1/records", "/healthz"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Host = host
			w := httptest.NewRecorder()
			expect := want
			if path == "/healthz" {
				expect = 200
			}
			if f.tracker.HTTPHandler().ServeHTTP(w, r); w.Code != expect {
				t.Errorf("%s of %s: %d, want %d: %.200s", path, host, w.Code, expect, w.Body)
			}
		}
	}
}

// TestCallInJSONIsRefusedBeforeItIsDecoded sends bodies of 4 MB, which decode to many times as much, without the role
// and beyond the bounds of the call.
func TestCallInJSONIsRefusedBeforeItIsDecoded(t *testing.T) {
	c := newClosed(t, false)
	body := `{"requestId":"r","spec":{"tasks":[` + strings.Repeat("{},", 4<<20/3-100) + `{}]}}`
	for who, want := range map[string]struct {
		code int
		text string
	}{"read-only": {403, `"code":7`}, "alice": {400, "tasks: has more than 4096 items"}} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		code, text := c.ask(who, "POST", "jobs", body)
		runtime.ReadMemStats(&after)
		if code != want.code || !strings.Contains(strings.ReplaceAll(text, `": `, `":`), want.text) {
			t.Errorf("%s: %d %.200s; want %d, %s", who, code, text, want.code, want.text)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 16*uint64(len(body)) {
			t.Errorf("%s: a body of %d bytes takes %d", who, len(body), took)
		}
	}
}

// TestStreamIsAMessageALine also checks that a stream stays open while messages may follow.
func TestStreamIsAMessageALine(t *testing.T) {
	c := newClosed(t, false)
	job := must[*tilthv1.Job](t)(c.submit("alice", "r")).GetId()
	r := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+c.web+"/api/v1/jobs/"+job+"/events", nil))
	r.Header.Set("Authorization", "Bearer "+c.tokens["read-only"])
	w, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	c.check(err)
	defer w.Body.Close()
	if kind := w.Header.Get("Content-Type"); kind != "application/x-ndjson" {
		t.Errorf("a stream is %s", kind)
	}
	heard := bufio.NewScanner(w.Body)
	next := func(want tilthv1.JobState) {
		t.Helper()
		var line struct{ Result json.RawMessage }
		var message tilthv1.WatchJobResponse
		if !heard.Scan() || json.Unmarshal(heard.Bytes(), &line) != nil || protojson.Unmarshal(line.Result, &message) != nil ||
			message.GetEvent().GetState().GetState() != want {
			t.Fatalf("%s is heard, want %s", heard.Bytes(), want)
		}
	}
	next(tilthv1.JobState_JOB_STATE_QUEUED)
	c.check(c.cancel("alice", job))
	next(tilthv1.JobState_JOB_STATE_CANCELLED)
	if heard.Scan() {
		t.Errorf("after the end there is %s", heard.Bytes())
	}
}

// TestRecordsAreComparedInJSON and returned, as by tilth records sync over gRPC.
func TestRecordsAreComparedInJSON(t *testing.T) {
	c := newClosed(t, false)
	stream := must[grpc.ClientStreamingClient[tilthv1.ImportRecordsRequest, tilthv1.ImportRecordsResponse]](t)(
		tilthv1.NewRecordServiceClient(c.as("admin")).ImportRecords(t.Context()))
	for second := range int64(3) {
		c.check(stream.Send(&tilthv1.ImportRecordsRequest{Record: storetest.Record("cpu-1", "conv", second, 0.5)}))
	}
	must[*tilthv1.ImportRecordsResponse](t)(stream.CloseAndRecv())
	call := func(method, target string, message, into proto.Message) {
		t.Helper()
		body := ""
		if message != nil {
			body = string(must[[]byte](t)(protojson.Marshal(message)))
		}
		code, text := c.ask("read-only", method, target, body)
		if code != http.StatusOK {
			t.Fatalf("%s %s: %d %s", method, target, code, text)
		}
		if into != nil {
			c.check(protojson.Unmarshal([]byte(text), into))
		}
	}
	groups, keys, lacking := &tilthv1.ListRecordGroupsResponse{}, &tilthv1.ListRecordKeysResponse{}, &tilthv1.FindLackingRecordsResponse{}
	call("GET", "records:groups?target=cpu-1", nil, groups)
	if len(groups.GetGroups()) != 1 || groups.GetGroups()[0].GetRecords() != 3 {
		t.Fatalf("the groups are %v", groups)
	}
	conv := groups.GetGroups()[0].GetWorkloadDigest()
	from := url.Values{"target": {"cpu-1"}, "workloadDigest": {conv}, "from": {base64.StdEncoding.EncodeToString(keysOf(1))}}
	call("GET", "records:keys?"+from.Encode(), nil, keys)
	if !bytes.Equal(keys.GetKeys(), keysOf(1, 2)) {
		t.Errorf("the keys from the second on are %x", keys.GetKeys())
	}
	call("POST", "records:lacking", &tilthv1.FindLackingRecordsRequest{Target: "cpu-1", WorkloadDigest: conv, Keys: keysOf(2, 7)}, lacking)
	if !bytes.Equal(lacking.GetKeys(), keysOf(7)) {
		t.Errorf("the lacking keys are %x", lacking.GetKeys())
	}
	body := string(must[[]byte](t)(protojson.Marshal(&tilthv1.GetRecordsRequest{Target: "cpu-1", WorkloadDigest: conv, Keys: keysOf(0, 2, 7)})))
	code, text := c.ask("read-only", "POST", "records:get", body)
	if lines := strings.Split(strings.TrimSpace(text), "\n"); code != http.StatusOK || len(lines) != 2 || !strings.Contains(lines[0], `"workload"`) {
		t.Errorf("of three records, two of which are there, come %d: %s", code, text)
	}
	if code, text := c.ask("read-only", "POST", "records:get", `{"keys": "eA=="}`); code != http.StatusBadRequest || !strings.Contains(text, "keys") {
		t.Errorf("keys that are none are answered with %d, %s", code, text)
	}
}

// TestDescriptionNamesEveryCall compares the list in docs/api.md with proto/http.yaml.
func TestDescriptionNamesEveryCall(t *testing.T) {
	c := newClosed(t, false)
	code, text := c.ask("read-only", "GET", "openapi.json", "")
	var description struct {
		Swagger string
		Paths   map[string]map[string]any
	}
	if err := json.Unmarshal([]byte(text), &description); err != nil || code != 200 || description.Swagger != "2.0" {
		t.Fatalf("%d, %v", code, err)
	}
	var list struct {
		HTTP struct{ Rules []map[string]string }
	}
	c.check(yaml.Unmarshal(must[[]byte](t)(os.ReadFile(filepath.Join("..", "proto", "http.yaml"))), &list))
	if len(list.HTTP.Rules) < 20 {
		t.Errorf("there are %d calls", len(list.HTTP.Rules))
	}
	for _, rule := range list.HTTP.Rules {
		for _, method := range []string{"get", "post", "delete"} {
			path := inBraces.ReplaceAllStringFunc(strings.ReplaceAll(rule[method], "=**", ""), camel)
			if path != "" && description.Paths[path][method] == nil {
				t.Errorf("%s %s is not described", method, path)
			}
		}
	}
}

var inBraces = regexp.MustCompile(`\{\w+\}`)

// camel writes a field's name as JSON does.
func camel(name string) string {
	return regexp.MustCompile(`_[a-z]`).ReplaceAllStringFunc(name, func(s string) string { return strings.ToUpper(s[1:]) })
}

// TestExamplesOfTheDocumentationRun executes the examples verbatim.
func TestExamplesOfTheDocumentationRun(t *testing.T) {
	c := newClosed(t, false)
	job := must[*tilthv1.Job](t)(c.submit("alice", "r")).GetId()
	joined := agentSpec("board-7/runner", tilthv1.AgentKind_AGENT_KIND_RUNNER)
	must[*tilthv1.JoinResponse](t)(tilthv1.NewAgentServiceClient(c.as("anna")).Join(t.Context(), &tilthv1.JoinRequest{Spec: joined}))
	text := string(must[[]byte](t)(os.ReadFile(filepath.Join("..", "docs", "api.md"))))
	examples := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(text, -1)
	if len(examples) < 4 {
		t.Fatalf("there are %d examples", len(examples))
	}
	for _, m := range examples {
		run := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", m[1])
		run.Env = append(os.Environ(), "TILTH=http://"+c.web, "TOKEN="+c.tokens["alice"], "JOB="+job, "no_proxy=*")
		if out, err := run.CombinedOutput(); err != nil || !strings.Contains(string(out), "{") {
			t.Errorf("%s\n%v\n%s", m[1], err, out)
		}
	}
}
