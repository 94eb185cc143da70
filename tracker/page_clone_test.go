package tracker_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

var requested = regexp.MustCompile(`name="request" value="([^"]+)"`)

// TestCloneBelongsToItsCaller checks that the clone belongs to the caller, and that a repeated form creates one
// job.
func TestCloneBelongsToItsCaller(t *testing.T) {
	c := newClosed(t, false)
	job := must[*tilthv1.Job](t)(c.submit("alice", "r"))
	target := "/jobs/" + job.GetId() + "/actions/clone"
	reader, bob := c.visitor(), c.visitor()
	reader.signIn("read-only", "/")
	bob.signIn("bob", "/")
	send := func(v *visitor, form url.Values) (code int, at string) {
		t.Helper()
		code, at, _ = v.do(http.MethodPost, target, form)
		return code, at
	}
	form := func(v *visitor) url.Values {
		t.Helper()
		_, _, text := v.do(http.MethodGet, target, nil)
		return url.Values{"form_token": {hidden.FindStringSubmatch(text)[1]}, "request": {requested.FindStringSubmatch(text)[1]}}
	}
	if code, _ := send(reader, form(reader)); code != http.StatusForbidden {
		t.Errorf("a reader's form gets status %d", code)
	}
	if _, _, text := bob.do(http.MethodGet, "/jobs/"+job.GetId(), nil); !strings.Contains(text, "/actions/clone") || strings.Contains(text, "/actions/pause") {
		t.Errorf("bob sees\n%s", text)
	}
	filled := form(bob)
	code, at := send(bob, filled)
	if code != http.StatusOK || !strings.HasPrefix(at, "/jobs/job-") || at == "/jobs/"+job.GetId() {
		t.Fatalf("bob's form leads to %s: %d", at, code)
	}
	if _, again := send(bob, filled); again != at {
		t.Errorf("the same form leads to %s, and to %s", at, again)
	}
	if _, other := send(bob, form(bob)); other == at {
		t.Error("another form leads to the same job")
	}
	made := must[*tilthv1.GetJobResponse](t)(tilthv1.NewJobServiceClient(c.as("bob")).GetJob(t.Context(),
		&tilthv1.GetJobRequest{JobId: strings.TrimPrefix(at, "/jobs/")})).GetJob().GetSpec()
	if made.GetOwner() != "bob" || string(made.GetTasks()[0].GetWorkload()) != string(job.GetSpec().GetTasks()[0].GetWorkload()) {
		t.Errorf("the clone is %v", made)
	}
	if code, _ := send(bob, url.Values{"request": {"x"}}); code != http.StatusForbidden {
		t.Errorf("a form without its token gets status %d", code)
	}
	c.wantAudit("JobService.SubmitJob read-only PermissionDenied", "JobService.SubmitJob bob OK")
}
