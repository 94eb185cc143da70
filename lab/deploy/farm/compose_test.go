package farm

import (
	"context"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/lab/deploy/compose"
	"github.com/tilth-dev/tilth/lab/deploy/container"
)

// patience is what a farm may take on a machine that is busy with other things.
const patience = 5 * time.Minute

// TestComposeRunsAFarm starts docker-compose.yml and does with it what deploy/README.md and docs/operations.md say.
func TestComposeRunsAFarm(t *testing.T) {
	container.Need(t)
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	f := startCompose(ctx, t)
	t.Run("rights", func(t *testing.T) { composeRights(t, f) })
	t.Run("volumes", func(t *testing.T) { composeVolumes(t, f) })
	t.Run("network", func(t *testing.T) { composeNetwork(ctx, t, f) })
	t.Run("job", func(t *testing.T) { composeJob(ctx, t, f) })
	t.Run("restart", func(t *testing.T) { composeRestarts(ctx, t, f) })
	if err := f.Down(); err != nil {
		t.Error(err)
	}
}

// startCompose starts all services but Grafana, which Debian has no package of.
func startCompose(ctx context.Context, t *testing.T) *compose.Farm {
	t.Helper()
	p := project(ctx, t)
	// Debian's promtool is too old for this check; what it asks is asked below.
	s := p.Services["prometheus"]
	s.HealthCheck = nil
	p.Services["prometheus"] = s
	machine, err := container.NewMachine("compose")
	if err != nil {
		t.Fatal(err)
	}
	made, err := images()
	if err != nil {
		t.Fatal(err)
	}
	f := &compose.Farm{Project: p, Machine: machine, Images: made}
	services := slices.DeleteFunc(p.ServiceNames(), func(name string) bool { return name == "grafana" })
	started := time.Now()
	if err := f.Up(ctx, services...); err != nil {
		t.Fatal(err)
	}
	t.Logf("built and started in %v", time.Since(started).Round(time.Millisecond))
	return f
}

var jobID = regexp.MustCompile(`\bjob-[\w.-]+`)

// composeJob does with the farm what deploy/README.md and docs/operations.md say, while Prometheus watches.
func composeJob(ctx context.Context, t *testing.T, f *compose.Farm) {
	since, farm := time.Now(), onFarm("localhost:9190")
	c := newClient(t, f.Machine.Net, f.Of("builder")[0].Image, f.Machine.Path("tilth_client-secrets"))
	c.tilth(ctx, "model bert-tiny --seq 16 -o model.onnx")
	// It goes on until all that is watched was seen.
	job := jobID.FindString(c.tilth(ctx, "jobs submit model.onnx --time 10m"+farm))
	tracker := f.Of("tracker")[0]
	_, err := tracker.Exec(ctx, "tilth", "health", "--http", "localhost:9191", "--tls-ca", "/run/tilth/ca.crt")
	if err != nil {
		t.Error(err)
	}
	p := newPrometheus(f.Machine.Net, "127.0.0.1:9090")
	p.seesTheFarm(ctx, t, map[string]int{"tracker": 1, "tuner": 1, "builder": 2, "runner": 1, "prometheus": 1})
	p.showsPanels(ctx, t, since)
	c.tilth(ctx, "jobs cancel "+job+farm)
	c.says(ctx, "tune model.onnx --trials 32 --quiet"+farm, ": done")
	c.says(ctx, "compile model.onnx -o model.tar"+farm, "of 10 tasks tuned")
	c.says(ctx, "run model.tar", "pooler_output f32[1 128]")
	c.says(ctx, "run model.tar"+farm, "pooler_output f32[1 128]")
	secrets := container.Volume{Name: "tilth_client-secrets", Destination: "/secrets"}
	env := []string{"TILTH_TLS_CA=/secrets/ca.crt", "TILTH_TOKEN_FILE=/secrets/client.token"}
	said, err := f.Run(ctx, "tuner", env, secrets, "jobs", "list", "--tracker", "tracker:9190")
	if err != nil || !jobID.MatchString(said) {
		t.Errorf("the farm's jobs: %v: %s", err, said)
	}
}
