package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/tilth-dev/tilth/lab/testkit/pgserver"
)

// composeService is the part of a Compose service that the test runs.
type composeService struct {
	Command     []string
	Environment map[string]string
}

// composeWithDatabase returns the services of docker-compose.yml with the overrides of docker-compose.postgres.yml.
func composeWithDatabase(t *testing.T) map[string]composeService {
	t.Helper()
	all := map[string]composeService{}
	for _, name := range []string{"docker-compose.yml", "docker-compose.postgres.yml"} {
		var file struct {
			Services map[string]struct {
				Command     []string
				Environment yaml.Node
			}
		}
		if err := yaml.Unmarshal(readFile(t, name), &file); err != nil {
			t.Fatal(err)
		}
		for service, s := range file.Services {
			one := composeService{Command: s.Command}
			if len(s.Environment.Content) > 0 {
				if err := s.Environment.Decode(&one.Environment); err != nil {
					t.Fatal(err)
				}
			}
			all[service] = one
		}
	}
	return all
}

// composeFarm runs the services of the two Compose files as processes with their own addresses.
type composeFarm struct {
	*farmUnderTest
	services map[string]composeService
	database string
	hosts    map[string]string
}

func startComposeFarm(t *testing.T, services ...string) *composeFarm {
	t.Helper()
	f := &composeFarm{farmUnderTest: newFarmUnderTest(t), services: composeWithDatabase(t), hosts: map[string]string{}}
	_, f.database = pgserver.ForTest(t)
	for i, service := range services {
		f.hosts[service] = fmt.Sprintf("127.%d.%d.%d", 64+os.Getpid()>>8&63, os.Getpid()&255, i+1)
	}
	f.setup()
	for _, service := range services {
		f.launch(service)
	}
	return f
}

// setup creates the files of the service "setup".
func (f *composeFarm) setup() {
	f.t.Helper()
	args := []string{filepath.Join("..", "..", "deploy", "docker", "setup.sh")}
	for _, reader := range []string{"authority", "tracker", "agents", "metrics", "clients"} {
		args = append(args, f.path(reader))
		if err := os.Mkdir(f.path(reader), 0o700); err != nil {
			f.t.Fatal(err)
		}
	}
	c := exec.CommandContext(f.t.Context(), "sh", args...)
	c.Env = append(os.Environ(), "TILTH_HOSTS="+strings.Join(slices.Sorted(maps.Values(f.hosts)), ","))
	if said, err := c.CombinedOutput(); err != nil {
		f.t.Fatalf("setup.sh: %v\n%s", err, said)
	}
}

func (f *composeFarm) path(name string) string { return filepath.Join(f.dir, name) }

// trackers returns the addresses behind the trackers' name.
func (f *composeFarm) trackers() string {
	return f.hosts["tracker"] + ":9190," + f.hosts["tracker-2"] + ":9190"
}

// launch runs the command of a service with this machine's folders and addresses.
func (f *composeFarm) launch(service string) {
	f.t.Helper()
	secrets := f.path("agents")
	if strings.HasPrefix(service, "tracker") {
		secrets = f.path("tracker")
	}
	here := strings.NewReplacer("tracker:9190", f.trackers(), "=:", "="+f.hosts[service]+":", "/run/tilth", secrets, "/var/lib/tilth/tracker", f.path("data"))
	var args []string
	for _, arg := range f.services[service].Command {
		if strings.HasPrefix(arg, "--store=") {
			arg = "--store=" + f.database
		}
		args = append(args, here.Replace(arg))
	}
	log, err := os.OpenFile(f.path(service+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		f.t.Fatal(err)
	}
	defer log.Close()
	c := exec.Command("tilth", args...)
	c.Env, c.Stderr = f.env(), log
	for name, value := range f.services[service].Environment {
		if strings.HasPrefix(name, "TILTH_") {
			c.Env = append(c.Env, name+"="+here.Replace(strings.ReplaceAll(value, "${TILTH_SHARDS:-1}", "4")))
		}
	}
	if err := c.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.running[service] = c
}

// as runs the program as a client.
func (f *composeFarm) as(ctx context.Context, args ...string) *process {
	return f.tilth(ctx, append(args, "--tracker", f.trackers(), "--tls-ca", f.path("clients/ca.crt"), "--token-file", f.path("clients/client.token"))...)
}

// jobs returns the farm's jobs, or none while it does not answer.
func (f *composeFarm) jobs(ctx context.Context) (jobs []jobRow) {
	list := f.as(ctx, "jobs", "list", "--json")
	list.start()
	if list.cmd.Wait() == nil {
		_ = json.Unmarshal(list.stdout.Bytes(), &jobs) // invalid output has no jobs
	}
	return jobs
}

// TestComposeWithSeveralShardsOutlivesATracker runs the Compose files' commands with TILTH_SHARDS=4 as a farm. It
// kills and restarts one tracker while a model is tuned.
func TestComposeWithSeveralShardsOutlivesATracker(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: runs a farm of five processes on a database, and kills both trackers")
	}
	t.Parallel() // mostly waits for processes
	ctx, cancel := context.WithTimeout(t.Context(), farmDeadline)
	defer cancel()
	f := startComposeFarm(t, "tracker", "tracker-2", "tuner", "builder", "runner")
	f.until(ctx, "agents have not joined", func() bool {
		list := f.as(ctx, "devices", "list")
		list.start()
		return list.cmd.Wait() == nil && bytes.Contains(list.stdout.Bytes(), []byte("idle"))
	})
	model := f.path("mlp.onnx")
	f.tilth(ctx, "model", "mlp", "-o", model).mustRun()
	tune := f.as(ctx, "tune", model, "--tasks", "0", "--trials", "48", "--wait", "--quiet")
	tune.start()
	f.until(ctx, "nothing is measured", func() bool {
		jobs := f.jobs(ctx)
		return len(jobs) == 1 && jobs[0].Trials > 0
	})
	// Either tracker may have the job's shard.
	f.kill("tracker")
	f.until(ctx, "the second tracker does not have all shards", func() bool {
		owners := f.as(ctx, "jobs", "owners")
		owners.start()
		return owners.cmd.Wait() == nil
	})
	f.launch("tracker")
	f.kill("tracker-2")
	tune.mustEnd()
	f.launch("tracker-2")
	if jobs := f.jobs(ctx); len(jobs) != 1 || jobs[0].State != "done" || jobs[0].Trials != 48 || jobs[0].Owner != "client" {
		t.Errorf("the jobs are %v", jobs)
	}
	for _, tracker := range []string{"tracker", "tracker-2"} {
		if log := readAll(t, f.path(tracker+".log")); !bytes.Contains(log, []byte("shard acquired")) {
			t.Errorf("%s served nothing:\n%s", tracker, log)
		}
	}
}

func readAll(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
