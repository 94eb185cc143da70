package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/tuner/progress"
)

// TestWhatFailsOnTheFarmReachesTheClient breaks the compiler of the only builder. The closing lines of tune, the job
// and its page must have the compiler's error, and the job must end.
func TestWhatFailsOnTheFarmReachesTheClient(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: runs a farm of processes until a job is given up")
	}
	t.Parallel() // mostly waits for processes
	ctx, cancel := context.WithTimeout(t.Context(), farmDeadline)
	defer cancel()
	clang, err := exec.LookPath("clang-19")
	if err != nil {
		clang, err = exec.LookPath("clang")
	}
	if err != nil {
		t.Fatal(err)
	}
	f := newFarmUnderTest(t)
	f.apart = true
	broken, compiler := filepath.Join(f.dir, "broken"), filepath.Join(f.dir, "clang")
	script := "#!/bin/sh\nif [ -e " + broken + " ]; then echo 'the licence of this compiler has expired' >&2; exit 1; fi\nexec " + clang + " \"$@\"\n"
	if err := os.WriteFile(compiler, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	web := "unix:" + filepath.Join(f.dir, "web")
	f.more = map[string][]string{
		"tracker": {"--http", web, "--lease-timeout", "15s", "--grace", "15s", "--max-attempts", "1"}, "builder": {"--compiler", compiler},
	}
	f.launchAll()
	f.awaitAgents(ctx)
	model := filepath.Join(f.dir, "mlp.onnx")
	f.tilth(ctx, "model", "mlp", "-o", model).mustRun()
	if err := os.WriteFile(broken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const fault = "the licence of this compiler has expired"
	tune := f.tilth(ctx, "tune", model, "--tracker", f.tracker, "--threads", "1", "--json")
	if err := tune.cmd.Run(); err == nil {
		t.Errorf("tuning succeeded without a compiler:\n%s", tune.stdout.String())
	}
	var s progress.Summary
	if err := json.Unmarshal(tune.stdout.Bytes(), &s); err != nil || len(s.FarmFailures) == 0 || !strings.Contains(s.FarmFailures[0].Message, fault) {
		t.Errorf("tune reports %v %s\n%s", err, tune.stdout.String(), tune.stderr.String())
	}
	show := f.tilth(ctx, "jobs", "show", s.Job, "--tracker", f.tracker)
	show.mustRun()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", strings.TrimPrefix(web, "unix:"))
	}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Get("http://localhost/jobs/" + s.Job)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{"jobs show": show.stdout.String(), "the page": string(page)} {
		if !strings.Contains(text, fault) {
			t.Errorf("%s has\n%s", what, text)
		}
	}
}
