package tracker_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/internal/access"
	"github.com/tilth-dev/tilth/internal/access/certs"
	"github.com/tilth-dev/tilth/internal/wire"
	"github.com/tilth-dev/tilth/lab/testkit/pgserver"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// closedRivals are two trackers with authentication that share a database. Each has a certificate from a common CA,
// and a part of the shards.
type closedRivals struct {
	*testing.T
	secrets map[string]string // tokens, by name
	a, b    *rival
	web     map[*rival]*http.Client
}

func newClosedRivals(t *testing.T) *closedRivals {
	t.Helper()
	database := pgserver.DatabaseForTest(t)
	return newClosedRivalsOn(t, database)
}

// newClosedRivalsOn is newClosedRivals for an existing database.
func newClosedRivalsOn(t *testing.T, database string) *closedRivals {
	t.Helper()
	c := &closedRivals{T: t, secrets: map[string]string{}, web: map[*rival]*http.Client{}}
	var artifacts []string
	for range someShards {
		artifacts = append(artifacts, t.TempDir())
	}
	c.a, c.b = makeRival(t, database, someShards, artifacts...), makeRival(t, database, someShards, artifacts...)
	file := filepath.Join(c.a.dir, "tokens.json")
	roles := map[string]access.Role{"reader": access.ReadOnly, "admin": access.Admin}
	for shard := range someShards {
		roles[ownerOf(shard)] = access.Client
	}
	for name, role := range roles {
		text, _, err := access.CreateToken(file, access.TokenRequest{Name: name, Role: role}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		c.secrets[name] = text
	}
	known := must[[]byte](t)(os.ReadFile(file))
	for _, r := range []*rival{c.a, c.b} {
		order := certs.Order{Hosts: []string{"localhost"}, Clients: map[string]access.Role{"carl": access.Client}, Lifetime: time.Hour}
		if _, err := order.Make(r.dir, time.Now()); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(r.dir, "tokens.json"), known, 0o600); err != nil {
			t.Fatal(err)
		}
		c.web[r] = c.client(r)
		r.start()
		c.has(r, someShards/len(c.web))
	}
	c.has(c.a, someShards/2)
	return c
}

// client returns an HTTP client of a tracker.
func (c *closedRivals) client(r *rival, certificates ...tls.Certificate) *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(must[[]byte](c)(os.ReadFile(filepath.Join(r.dir, "ca.crt"))))
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "localhost", Certificates: certificates},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(r.dir, "web"))
		},
	}
	c.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Jar: must[*cookiejar.Jar](c)(cookiejar.New(nil)), Timeout: time.Minute}
}

// ask makes a request with the token of the given name; status 0 means a transport error.
func (c *closedRivals) ask(web *http.Client, name, method, target, kind, body string) (code int, at, text string) {
	c.Helper()
	r := must[*http.Request](c)(http.NewRequestWithContext(c.Context(), method, "https://localhost"+target, strings.NewReader(body)))
	if name != "" {
		r.Header.Set("Authorization", "Bearer "+c.secrets[name])
	}
	if body != "" {
		r.Header.Set("Content-Type", kind)
	}
	w, err := web.Do(r)
	if err != nil {
		return 0, "", err.Error()
	}
	defer w.Body.Close()
	return w.StatusCode, w.Request.URL.Path, string(must[[]byte](c)(io.ReadAll(w.Body)))
}

// call makes a JSON call.
func (c *closedRivals) call(r *rival, name, method, target string, message proto.Message, into proto.Message) (code int, text string) {
	c.Helper()
	body := ""
	if message != nil {
		body = string(must[[]byte](c)(protojson.Marshal(message)))
	}
	code, _, text = c.ask(c.web[r], name, method, "/api/v1/"+target, "application/json", body)
	if code == http.StatusOK && into != nil {
		if err := protojson.Unmarshal([]byte(text), into); err != nil {
			c.Fatal(err)
		}
	}
	return code, text
}

// shards returns the shards that a tracker reports.
func (c *closedRivals) shards(r *rival) (shards []int) {
	_, _, text := c.ask(c.web[r], "reader", "GET", "/metrics", "", "")
	for shard := range someShards {
		if strings.Contains(text, fmt.Sprintf("tilth_tracker_active{shard=\"%d\"} 1", shard)) {
			shards = append(shards, shard)
		}
	}
	return shards
}

func (c *closedRivals) has(r *rival, want int) {
	c.Helper()
	for end := time.Now().Add(10 * time.Minute); len(c.shards(r)) != want; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			c.Fatalf("the tracker has the shards %v, not %d", c.shards(r), want)
		}
	}
}

// submission returns a request for a tiny job.
func submission(request string) *tilthv1.SubmitJobRequest {
	return &tilthv1.SubmitJobRequest{RequestId: request, Spec: spec("conv")}
}

// TestPagesAndCallsInJSONReachTheShardOfWhoAsks checks that any tracker forwards a JSON call or page to the tracker
// of the caller's shard, with the caller's identity.
func TestPagesAndCallsInJSONReachTheShardOfWhoAsks(t *testing.T) {
	t.Parallel() // mostly waits
	c := newClosedRivals(t)
	for shard := range someShards {
		owner := ownerOf(shard)
		var ids []string
		for _, r := range []*rival{c.a, c.b} {
			made := &tilthv1.SubmitJobResponse{}
			code, text := c.call(r, owner, "POST", "jobs", submission("r"), made)
			if code != http.StatusOK || wire.ShardOf(made.GetJob().GetId()) != shard || made.GetJob().GetSpec().GetOwner() != owner {
				t.Fatalf("%s submits to shard %d: %d, %s", owner, shard, code, text)
			}
			ids = append(ids, made.GetJob().GetId())
		}
		if ids[0] != ids[1] {
			t.Errorf("a submission that is repeated at the other tracker makes %s beside %s", ids[1], ids[0])
		}
		// The other tracker authorises the call as if it were direct.
		pause, reason := "jobs/"+ids[0]+":pause", &tilthv1.PauseJobRequest{Reason: "lunch"}
		for _, r := range []*rival{c.a, c.b} {
			if code, text := c.call(r, ownerOf((shard+1)%someShards), "POST", pause, reason, nil); code != http.StatusForbidden {
				t.Errorf("another client pauses the job of %s: %d, %s", owner, code, text)
			}
			if code, text := c.call(r, "reader", "POST", "jobs", submission("s"), nil); code != http.StatusForbidden {
				t.Errorf("a reader submits a job: %d, %s", code, text)
			}
		}
		if code, text := c.call(c.a, owner, "POST", pause, reason, nil); code != http.StatusOK {
			t.Errorf("%s pauses a job at one tracker: %d, %s", owner, code, text)
		}
		if code, text := c.call(c.b, owner, "POST", "jobs/"+ids[0]+":resume", &tilthv1.ResumeJobRequest{}, nil); code != http.StatusOK {
			t.Errorf("%s resumes a job at the other: %d, %s", owner, code, text)
		}
	}
	// Every tracker serves all records, regardless of its shards.
	for _, r := range []*rival{c.a, c.b} {
		if code, text := c.call(r, "reader", "GET", "records", nil, nil); code != http.StatusOK {
			t.Errorf("records are listed where the shards %v are: %d, %s", c.shards(r), code, text)
		}
	}
	listed := &tilthv1.ListOwnersResponse{}
	if code, text := c.call(c.b, "reader", "GET", "owners", nil, listed); code != http.StatusOK || len(listed.GetOwners()) != someShards {
		t.Errorf("of %d owners, %d are listed: %d, %s", someShards, len(listed.GetOwners()), code, text)
	}
	c.clones()
	c.certificates()
}

// clones clones an owner's job on the page of a tracker without the owner's shard.
func (c *closedRivals) clones() {
	c.Helper()
	owner := ownerOf(c.shards(c.b)[0])
	web := c.client(c.a)
	form := func(target string, fields url.Values) (code int, at, text string) {
		_, _, page := c.ask(web, "", "GET", target, "", "")
		token := hidden.FindStringSubmatch(page)
		if token == nil {
			c.Fatalf("%s has no form:\n%s", target, page)
		}
		fields.Set("form_token", html.UnescapeString(token[1]))
		if request := requested.FindStringSubmatch(page); request != nil {
			fields.Set("request", request[1])
		}
		return c.ask(web, "", "POST", target, "application/x-www-form-urlencoded", fields.Encode())
	}
	form("/signin", url.Values{"token": {c.secrets[owner]}, "next": {"/jobs"}})
	listed := &tilthv1.ListJobsResponse{}
	c.call(c.a, "reader", "GET", "jobs", nil, listed)
	for _, j := range listed.GetJobs() {
		code, at, text := form("/jobs/"+j.GetId()+"/actions/clone", url.Values{})
		id := strings.TrimPrefix(at, "/jobs/")
		if code != http.StatusOK || wire.ShardOf(id) != wire.ShardOfOwner(owner, someShards) || id == j.GetId() {
			c.Errorf("%s clones %s: %d at %s\n%s", owner, j.GetId(), code, at, text)
		}
	}
}

// certificates calls as a client with a certificate, which cannot be forwarded.
func (c *closedRivals) certificates() {
	c.Helper()
	for _, r := range []*rival{c.a, c.b} {
		carl := must[tls.Certificate](c)(tls.LoadX509KeyPair(filepath.Join(r.dir, "carl.crt"), filepath.Join(r.dir, "carl.key")))
		body := string(must[[]byte](c)(protojson.Marshal(submission("by-certificate"))))
		code, _, text := c.ask(c.client(r, carl), "", "POST", "/api/v1/jobs", "application/json", body)
		here := bytes.ContainsRune([]byte(fmt.Sprint(c.shards(r))), rune('0'+wire.ShardOfOwner("carl", someShards)))
		if here && code != http.StatusOK || !here && (code != http.StatusUnauthorized || !strings.Contains(text, "use a token")) {
			c.Errorf("carl submits at a tracker that has his shard (%v): %d, %s", here, code, text)
		}
	}
}

// TestCallForAShardWhoseTrackerStandsStillSaysSo suspends one tracker. Requests at the other one for its shard must
// fail with a one-line explanation until the shard is taken over.
func TestCallForAShardWhoseTrackerStandsStillSaysSo(t *testing.T) {
	t.Parallel() // mostly waits
	c := newClosedRivals(t)
	owner := ownerOf(c.shards(c.b)[0])
	if code, text := c.call(c.a, owner, "POST", "jobs", submission("first"), nil); code != http.StatusOK {
		t.Fatalf("a job is submitted: %d, %s", code, text)
	}
	c.b.signal(syscall.SIGSTOP)
	defer c.b.signal(syscall.SIGCONT)
	for end := time.Now().Add(10 * time.Minute); ; {
		code, text := c.call(c.a, owner, "POST", "jobs", submission("second"), nil)
		if code == http.StatusOK {
			return
		}
		if code != http.StatusServiceUnavailable || !strings.Contains(text, "does not answer: another one takes over within seconds") {
			t.Fatalf("the call is answered with %d, %s", code, text)
		}
		if time.Now().After(end) {
			t.Fatal("nobody takes over")
		}
	}
}
