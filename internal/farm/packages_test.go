package farm_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth"
	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/farm"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker"
)

// services are the services of a farm in this process, which can be stopped and started one by one.
type services struct {
	*testing.T
	dir     string
	tc      *toolchain.Toolchain
	machine *target.Target
	// client is connected to the tracker since its last start.
	client *client.Client
	// web is the address of the pages.
	web  string
	stop map[string]func()
}

func newServices(t *testing.T) *services {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir()) // for a host lock of its own
	s := &services{T: t, dir: t.TempDir(), stop: map[string]func(){}}
	var err error
	s.tc, err = toolchain.Find(t.Context(), "")
	s.check(err)
	s.machine, err = target.Native(1)
	s.check(err)
	s.check(toolchaintest.ShareCaches(s.dir))
	t.Cleanup(func() {
		for _, name := range []string{"builder", "runner", "tuner", "tracker"} {
			s.end(name)
		}
	})
	return s
}

func (s *services) check(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *services) socket() string { return "unix:" + filepath.Join(s.dir, "sock") }

// start runs a service until end.
func (s *services) start(name string) {
	s.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan string, 1), make(chan error, 1)
	log := slog.New(slog.DiscardHandler)
	agent := farm.AgentConfig{
		Tracker: s.socket(), Name: name, CacheDir: s.dir, Version: "v1", Logger: log, Joined: func() {
			select {
			case ready <- "":
			default:
			}
		},
	}
	go func() {
		switch name {
		case "tracker":
			done <- farm.RunTracker(ctx, farm.TrackerConfig{
				Records: filepath.Join(s.dir, "tilth.db"), Listen: s.socket(), HTTP: "127.0.0.1:0",
				Tracker: tracker.Config{ArtifactsDir: filepath.Join(s.dir, "artifacts"), Logger: log}, Ready: func(_, web net.Addr) { ready <- web.String() },
			})
		case "tuner":
			done <- farm.RunTuner(ctx, farm.TunerConfig{AgentConfig: agent, Read: farm.ReadArgs})
		case "builder":
			done <- farm.RunBuilder(ctx, farm.BuilderConfig{AgentConfig: agent, Toolchain: s.tc, Parallel: 2, Read: farm.ReadArgs})
		case "runner":
			done <- farm.RunRunner(ctx, farm.RunnerConfig{AgentConfig: agent, Targets: []*target.Target{s.machine}})
		}
	}()
	select {
	case web := <-ready:
		if web != "" {
			s.web = "http://" + web
			s.dial()
		}
	case err := <-done:
		s.Fatalf("%s: %v", name, err)
	}
	s.stop[name] = func() {
		cancel()
		if err := <-done; err != nil {
			s.Errorf("%s: %v", name, err)
		}
	}
}

func (s *services) dial() {
	s.Helper()
	c, err := client.Dial(s.socket(), slog.New(slog.DiscardHandler))
	s.check(err)
	s.Cleanup(func() { s.check(c.Close()) })
	s.client = c
}

func (s *services) end(name string) {
	if stop := s.stop[name]; stop != nil {
		stop()
		delete(s.stop, name)
	}
}

// get returns a page, or another file.
func (s *services) get(path string) string {
	s.Helper()
	response, err := http.Get(s.web + path)
	s.check(err)
	return s.body(response)
}

func (s *services) body(response *http.Response) string {
	s.Helper()
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	s.check(err)
	if response.StatusCode != http.StatusOK {
		s.Fatalf("%s: %s\n%s", response.Request.URL, response.Status, text)
	}
	return string(text)
}

// tune submits a model without a compiler and returns the finished job.
func (s *services) tune(path string) (id string) {
	s.Helper()
	job, err := s.client.SubmitModel(s.Context(), path, &tilthv1.JobSpec{
		Name: "doubles", Tuner: "random", Numerics: "default", Budget: &tilthv1.Budget{Trials: 2}, Model: &tilthv1.ModelSpec{},
		Target: &tilthv1.TargetSpec{DeviceClass: s.machine.DeviceClass()},
	})
	s.check(err)
	s.check(s.client.Watch(s.Context(), &tilthv1.WatchJobRequest{JobId: job.GetId()}, func(*tilthv1.JobEvent) error { return nil }, nil))
	return job.GetId()
}

var formToken = regexp.MustCompile(`name="form_token" value="([^"]*)"`)

// TestPageHasTheFarmMakeAPackage presses the button while no builder is there, restarts the tracker before one is, and
// runs the downloaded package.
func TestPageHasTheFarmMakeAPackage(t *testing.T) {
	s := newServices(t)
	for _, name := range []string{"tracker", "tuner", "builder", "runner"} {
		s.start(name)
	}
	model := filepath.Join(s.dir, "doubles.onnx")
	s.check(os.WriteFile(model, doubles().Encode(), 0o600))
	tuned := s.tune(model)
	s.end("builder")
	action := "/jobs/" + tuned + "/actions/package"
	form := url.Values{}
	if found := formToken.FindStringSubmatch(s.get(action)); found != nil {
		form.Set("form_token", found[1])
	}
	response, err := http.PostForm(s.web+action, form)
	s.check(err)
	at := response.Request.URL.Path
	if text := s.body(response); !strings.Contains(text, "no builder that makes packages") {
		t.Errorf("without a builder the page is\n%s", text)
	}
	s.end("tracker")
	s.start("tracker")
	s.start("builder")
	made, err := s.client.MakePackage(t.Context(), tuned, nil)
	if err != nil || "/jobs/"+made.GetId() != at {
		t.Fatalf("the package is made by job %s, not at %s: %v", made.GetId(), at, err)
	}
	link := at + "/packages/0"
	if text := s.get("/jobs/" + tuned); !strings.Contains(text, `<a href="`+link+`" download>doubles.tar</a>`) {
		t.Errorf("the tuned job's page does not offer the package:\n%s", text)
	}
	file := filepath.Join(s.dir, "doubles.tar")
	s.check(os.WriteFile(file, []byte(s.get(link)), 0o600))
	s.wantDoubles(file)
}

// wantDoubles checks the contents and the results of the package.
func (s *services) wantDoubles(file string) {
	s.Helper()
	manifest, err := aot.ReadManifest(file)
	s.check(err)
	if p := manifest.Provenance; len(manifest.Tasks) != 1 || manifest.Tasks[0].Origin != "tuned" || manifest.Tasks[0].Record == nil || p.Numerics != "default" || p.Tilth != "v1" {
		s.Errorf("the manifest is %+v, with provenance %+v", manifest, manifest.Provenance)
	}
	loaded, err := tilth.Load(file)
	s.check(err)
	defer loaded.Close()
	x := make([]float32, 64)
	for i := range x {
		x[i] = float32(i)
	}
	outputs, err := loaded.Run(s.Context(), []tilth.Tensor{tilth.NewTensor("x", x, 8, 8)})
	s.check(err)
	y, err := outputs[0].Float32s()
	s.check(err)
	for i := range y {
		if y[i] != 2*x[i] {
			s.Fatalf("element %d is %v, want %v", i, y[i], 2*x[i])
		}
	}
}
