package farm

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/tilth-dev/tilth/lab/deploy/container"
	"github.com/tilth-dev/tilth/lab/deploy/kube"
)

// strangers are pods of other namespaces than the farm's.
type strangers struct{ client, monitoring, other *kube.Pod }

// TestKubernetesRunsAFarm starts deploy/kubernetes, after the secrets were made as deploy/README.md says.
func TestKubernetesRunsAFarm(t *testing.T) {
	container.Need(t)
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := newCluster(ctx, t)
	var s strangers
	for _, pod := range []struct {
		at        **kube.Pod
		namespace string
		labels    map[string]string
	}{{&s.client, "lab", map[string]string{"tilth.dev/clients": "true"}}, {&s.monitoring, "monitoring",
		nil}, {&s.other, "other", nil}} {
		var err error
		if *pod.at, err = c.Add(pod.namespace, pod.labels); err != nil {
			t.Fatal(err)
		}
	}
	started := time.Now()
	if err := c.Up(ctx); err != nil {
		t.Fatal(err)
	}
	t.Logf("started in %v", time.Since(started).Round(time.Millisecond))
	t.Run("rights", func(t *testing.T) {
		for _, component := range []string{"tracker", "tuner", "builder", "runner"} {
			for _, p := range c.Of(component) {
				restricted(t, p.Container, 65532)
			}
		}
	})
	t.Run("network", func(t *testing.T) { kubeNetwork(ctx, t, c, s) })
	t.Run("job", func(t *testing.T) { kubeJob(ctx, t, c, s.client) })
	if err := c.Live(ctx); err != nil {
		t.Error(err)
	}
	if err := c.Down(); err != nil {
		t.Error(err)
	}
}

// newCluster has a copy of deploy/kubernetes, with secrets.
func newCluster(ctx context.Context, t *testing.T) *kube.Cluster {
	t.Helper()
	made := ourImages(ctx, t)
	dir := filepath.Join(t.TempDir(), "kubernetes")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "deploy", "kubernetes"))); err != nil {
		t.Fatal(err)
	}
	program, err := made["tilth:host"].File("/usr/local/bin/tilth")
	if err != nil {
		t.Fatal(err)
	}
	setup := exec.CommandContext(ctx, "sh", filepath.Join(root, "deploy", "docker", "setup.sh"))
	for _, reader := range []string{"authority", "tracker", "agents", "metrics", "clients"} {
		folder := filepath.Join(dir, "secrets", reader)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		setup.Args = append(setup.Args, folder)
	}
	setup.Env = append(os.Environ(), "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"),
		"TILTH_HOSTS=tracker,tracker.tilth,tracker.tilth.svc")
	if said, err := setup.CombinedOutput(); err != nil {
		t.Fatalf("setup.sh: %v: %s", err, said)
	}
	manifests, err := kube.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	machine, err := container.NewMachine("kubernetes")
	if err != nil {
		t.Fatal(err)
	}
	return &kube.Cluster{Machine: machine, Manifests: manifests, Dir: dir, Images: made}
}

// kubeJob tunes a model from a client's pod, and compiles it with the farm's records.
func kubeJob(ctx context.Context, t *testing.T, c *kube.Cluster, client *kube.Pod) {
	work := t.TempDir()
	if err := os.CopyFS(filepath.Join(work, "secrets"),
		os.DirFS(filepath.Join(c.Dir, "secrets", "clients"))); err != nil {
		t.Fatal(err)
	}
	tilth := func(name, line string) string {
		t.Helper()
		running, err := c.Machine.Start(container.Spec{
			Name: name, Hostname: name, Image: c.Images["tilth:host"], Args: append([]string{"/usr/local/bin/tilth"},
				strings.Fields(line)...),
			Capabilities: container.DefaultCapabilities, Dir: "/work", Network: client.Net, NameServer: c.NameServer(),
			Mounts: []specs.Mount{container.Bind(work, "/work", false)},
			Search: []string{"lab.svc.cluster.local", "svc.cluster.local", "cluster.local"},
		})
		if err == nil {
			err = running.Wait(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		return running.LastWords()
	}
	farm := " --tracker tracker.tilth:9190 --tls-ca secrets/ca.crt --token-file secrets/client.token"
	tilth("model", "model mlp -o model.onnx")
	tilth("tune", "tune model.onnx --trials 24 --quiet"+farm)
	if said := tilth("compile", "compile model.onnx -o model.tar"+farm); !strings.Contains(said, "4 of 4 tasks tuned") {
		t.Errorf("the package has not what the farm found: %s", said)
	}
	if said := tilth("run", "run model.tar"); !strings.Contains(said, "f32[1 10]") {
		t.Errorf("the package did not run: %s", said)
	}
}

// kubeNetwork looks who reaches whom under the network policies.
func kubeNetwork(ctx context.Context, t *testing.T, c *kube.Cluster, s strangers) {
	beyond, err := container.NewOutside(c.Machine.Net)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = beyond.Close() })
	tracker, tuner, builder, runner := c.Of("tracker")[0], c.Of("tuner")[0], c.Of("builder")[0], c.Of("runner")[0]
	for _, way := range []struct {
		from *kube.Pod
		to   netip.Addr
		port uint16
		open bool
	}{
		{tuner, tracker.Addr, 9190, true},
		{builder, tracker.Addr, 9190, true},
		{runner, tracker.Addr, 9190, true},
		{runner, tracker.Addr, 9191, false},
		{runner, builder.Addr, 9192, false},
		{runner, beyond.Addr.Addr(), 443, false},
		{tracker, beyond.Addr.Addr(), 443, false},
		{s.client, tracker.Addr, 9190, true},
		{s.client, tracker.Addr, 9191, false},
		{s.client, beyond.Addr.Addr(), 443, true},
		{s.monitoring, tracker.Addr, 9191, true},
		{s.monitoring, tuner.Addr, 9192, true},
		{s.monitoring, tracker.Addr, 9190, false},
		{s.other, tracker.Addr, 9190, false},
		{s.other, runner.Addr, 9192, false},
	} {
		to := netip.AddrPortFrom(way.to, way.port)
		t.Run(way.from.Name+" to "+to.String(), func(t *testing.T) {
			t.Parallel()
			// What policies drop is not answered, so that only time tells.
			limit := 20 * time.Second
			if !way.open {
				limit = time.Second
			}
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			if err := way.from.Net.Reaches(ctx, to); (err == nil) != way.open {
				t.Errorf("reaches it: %v, want %v (%v)", err == nil, way.open, err)
			}
		})
	}
}
