package tracker_test

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/tilth-dev/tilth/internal/artifact"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// tuneForm sends the form of /tune: pairs of names and values, and then a model unless it is empty.
func (v *visitor) tuneForm(model string, fields ...string) (code int, at, text string) {
	v.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for i := 0; i+1 < len(fields); i += 2 {
		v.check(form.WriteField(fields[i], fields[i+1]))
	}
	if model != "" {
		part := must[io.Writer](v)(form.CreateFormFile("model", "../dir/net.onnx"))
		must[int](v)(io.WriteString(part, model))
	}
	v.check(form.Close())
	r := must[*http.Request](v)(http.NewRequestWithContext(v.Context(), http.MethodPost, "http://"+v.web+"/tune", &body))
	r.Header.Set("Accept", "text/html")
	r.Header.Set("Content-Type", form.FormDataContentType())
	w, err := v.client.Do(r)
	v.check(err)
	defer w.Body.Close()
	return w.StatusCode, w.Request.URL.RequestURI(), string(must[[]byte](v)(io.ReadAll(w.Body)))
}

// received returns the names of files in the folder of artifacts.
func (c *closed) received() (names []string) {
	c.Helper()
	c.check(filepath.WalkDir(c.path("artifacts"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, filepath.Base(path))
		}
		return err
	}))
	return names
}

// TestModelIsTunedByWhoMaySubmit checks roles, forms of other sessions, bad fields and repetitions. A refused form
// stores nothing.
func TestModelIsTunedByWhoMaySubmit(t *testing.T) {
	c := newClosed(t, false)
	reader, alice, bob := c.visitor(), c.visitor(), c.visitor()
	reader.signIn("read-only", "/")
	alice.signIn("alice", "/")
	bob.signIn("bob", "/")
	if code, _, _ := reader.do(http.MethodGet, "/tune", nil); code != http.StatusForbidden {
		t.Errorf("a reader gets the form: %d", code)
	}
	if _, _, text := reader.do(http.MethodGet, "/jobs", nil); strings.Contains(text, `href="/tune"`) {
		t.Error("a reader is offered the form")
	}
	token := alice.formToken("/tune")
	rest := []string{"request", "once", "class", "x86", "numerics", "fast"}
	for name, test := range map[string]struct {
		by     *visitor
		model  string
		fields []string
		want   int
	}{
		"a reader":                {reader, "model", append([]string{"form_token", reader.formToken("/"), "minutes", "5"}, rest...), http.StatusForbidden},
		"no token":                {alice, "model", append([]string{"minutes", "5"}, rest...), http.StatusForbidden},
		"another session's token": {alice, "model", append([]string{"form_token", bob.formToken("/tune"), "minutes", "5"}, rest...), http.StatusForbidden},
		"no minutes":              {alice, "model", append([]string{"form_token", token}, rest...), http.StatusBadRequest},
		"too many minutes":        {alice, "model", append([]string{"form_token", token, "minutes", "10081"}, rest...), http.StatusBadRequest},
		"no model":                {alice, "", append([]string{"form_token", token, "minutes", "5"}, rest...), http.StatusBadRequest},
		"too many fields":         {alice, "model", strings.Split(strings.Repeat("x,", 40), ","), http.StatusBadRequest},
	} {
		if code, _, text := test.by.tuneForm(test.model, test.fields...); code != test.want {
			t.Errorf("%s: %d, want %d\n%s", name, code, test.want, text)
		}
	}
	if names := c.received(); len(names) > 0 {
		t.Errorf("refused forms left %v", names)
	}
	filled := append([]string{"form_token", token, "minutes", "5"}, rest...)
	code, at, text := alice.tuneForm("the bytes of a model", filled...)
	if code != http.StatusOK || !strings.HasPrefix(at, "/jobs/job-") {
		t.Fatalf("Alice's form leads to %s: %d\n%s", at, code, text)
	}
	if _, again, _ := alice.tuneForm("the bytes of a model", filled...); again != at {
		t.Errorf("the same form leads to %s and %s", at, again)
	}
	made := must[*tilthv1.GetJobResponse](t)(tilthv1.NewJobServiceClient(c.as("alice")).GetJob(t.Context(),
		&tilthv1.GetJobRequest{JobId: strings.TrimPrefix(at, "/jobs/")})).GetJob().GetSpec()
	digest := records.Digest([]byte("the bytes of a model"))
	if made.GetOwner() != "alice" || made.GetName() != "net" || made.GetNumerics() != "fast" || made.GetBudget().GetTime().AsDuration() != 5*time.Minute ||
		made.GetModel().GetFile().GetDigest() != digest || made.GetTarget().GetDeviceClass() != "x86" {
		t.Errorf("the job is %v", made)
	}
	if names := c.received(); len(names) != 1 || names[0] != digest {
		t.Errorf("the artifacts are %v, want %s", names, digest)
	}
	c.wantAudit("JobService.SubmitJob alice OK")
}

// TestBrowserUploadsAModelAndDownloadsAPackage uses the form and the link of a job that runs a package.
func TestBrowserUploadsAModelAndDownloadsAPackage(t *testing.T) {
	c := newClosed(t, false)
	model, pack := bytes.Repeat([]byte("model "), 1<<20), strings.Repeat("package ", 1<<20)
	c.check(os.WriteFile(c.path("net.onnx"), model, 0o600))
	c.check(os.WriteFile(c.path("m.tar"), []byte(pack), 0o600))
	uploaded := must[*tilthv1.ArtifactRef](t)(artifact.NewClient(c.as("alice"), nil, nil).Upload(t.Context(), "package", c.path("m.tar")))
	run := must[*tilthv1.SubmitJobResponse](t)(tilthv1.NewJobServiceClient(c.as("alice")).SubmitJob(t.Context(), &tilthv1.SubmitJobRequest{
		RequestId: "run", Spec: &tilthv1.JobSpec{
			Name: "run", Target: &tilthv1.TargetSpec{DeviceClass: "x86"},
			Run: &tilthv1.RunSpec{Packages: []*tilthv1.RunPackage{{Name: "m.tar", Artifact: uploaded}}},
		},
	})).GetJob().GetId()
	ctx, complaints := browser(t)
	limited, cancel := context.WithTimeout(ctx, 10*time.Minute) // detects a hang
	defer cancel()
	err := chromedp.Do(limited, chromedp.Navigate("http://"+c.web+"/jobs"), chromedp.SendKeys(`input[name="token"]`, c.tokens["alice"]+"\r"),
		chromedp.Click(`a[href="/tune"]`), chromedp.SendKeys(`input[name="class"]`, "x86"),
		chromedp.SetUploadFiles(`input[name="model"]`, []string{c.path("net.onnx")}), chromedp.Click(`form.ask button`),
		chromedp.WaitVisible(`h1 .reading`))
	if err != nil {
		t.Fatal(err)
	}
	if text := must[string](t)(chromedp.Run(limited, chromedp.Evaluate[string](`document.body.innerText`))); !strings.Contains(text, "tilth compile net.onnx --tracker") {
		t.Errorf("the page has no command that makes the package:\n%s", text)
	}
	if names := c.received(); len(names) != 2 || names[0] != records.Digest(model) && names[1] != records.Digest(model) {
		t.Errorf("the artifacts are %v, want %s", names, records.Digest(model))
	}
	if err := chromedp.Do(limited, chromedp.Navigate("http://"+c.web+"/jobs/"+run), chromedp.WaitVisible(`a[download]`)); err != nil {
		t.Fatal(err)
	}
	got := must[string](t)(chromedp.Run(limited, chromedp.Evaluate[string](`(async () => {
		const answer = await fetch(document.querySelector("a[download]").href);
		const text = await answer.text();
		return [answer.status, answer.headers.get("Content-Disposition"), text === "package ".repeat(1 << 20)].join(" ");
	})()`, chromedp.EvalAwaitPromise)))
	if got != "200 attachment; filename=m.tar true" {
		t.Errorf("the browser downloads %s", got)
	}
	if heard := complaints(); len(heard) > 0 {
		t.Errorf("the browser complains: %s", heard)
	}
}
