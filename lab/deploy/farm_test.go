package deploy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/miekg/dns"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// patience is the timeout of a farm's test on a busy machine.
const patience = 10 * time.Minute

// buildPrograms runs the builds of the Dockerfile and installs the programs of both images in dir.
func buildPrograms(dir string) error {
	text, err := os.ReadFile(filepath.Join(root, "deploy/docker/Dockerfile"))
	if err != nil {
		return err
	}
	for _, line := range strings.Split(string(text), "\n") {
		command, isRun := strings.CutPrefix(line, "RUN ")
		if !isRun || !strings.Contains(command, "go build") {
			continue
		}
		build := exec.Command("sh", "-ec", strings.ReplaceAll(command, "/out/", dir+"/out/"))
		build.Dir, build.Env = root, append(os.Environ(), "VERSION=test")
		if said, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", command, err, said)
		}
	}
	setup, err := os.ReadFile(filepath.Join(root, "deploy/docker/setup.sh"))
	if err != nil {
		return err
	}
	return errors.Join(
		os.Mkdir(filepath.Join(dir, "service"), 0o755), os.Rename(filepath.Join(dir, "out/tilth"), filepath.Join(dir, "service/tilth")),
		os.Rename(filepath.Join(dir, "out/host"), filepath.Join(dir, "host")),
		os.WriteFile(filepath.Join(dir, "host/tilth-setup"), setup, 0o755),
	)
}

// farm is a running Compose project.
type farm struct {
	t       *testing.T
	project *types.Project
	volumes string
	// hosts holds the last bytes of the addresses of each service's containers.
	hosts   map[string][]int
	running map[string][]*running
}

// names serves DNS names of services to the containers, like an engine.
func (f *farm) names() {
	conn, err := net.ListenPacket("udp", gateway+":53")
	if err != nil {
		f.t.Fatal(err)
	}
	server := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, question *dns.Msg) {
		reply := new(dns.Msg).SetReply(question)
		q := question.Question[0]
		hosts, known := f.hosts[strings.TrimSuffix(q.Name, ".")]
		if !known {
			reply.SetRcode(question, dns.RcodeNameError)
		}
		for _, host := range hosts {
			if q.Qtype == dns.TypeA {
				head := dns.RR_Header{Name: q.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 5}
				reply.Answer = append(reply.Answer, &dns.A{Hdr: head, A: net.ParseIP(fmt.Sprint(subnet, host))})
			}
		}
		_ = w.WriteMsg(reply) // the client retries
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.ActivateAndServe() // until Shutdown
	}()
	f.t.Cleanup(func() {
		_ = server.Shutdown()
		<-done
	})
}

// up starts services in dependency order and waits for their health checks.
func (f *farm) up(ctx context.Context, services ...string) {
	f.t.Helper()
	host := 2
	for _, name := range services {
		s := f.project.Services[name]
		for range s.GetScale() {
			f.hosts[name] = append(f.hosts[name], host)
			if err := addNetwork(fmt.Sprintf("%s-%d", name, host), host); err != nil {
				f.t.Fatal(err)
			}
			host++
		}
	}
	f.names()
	err := f.project.ForEachService(services, func(_ string, s *types.ServiceConfig) error {
		for _, host := range f.hosts[s.Name] {
			f.running[s.Name] = append(f.running[s.Name], start(f.t, f.container(s, fmt.Sprintf("%s-%d", s.Name, host))))
		}
		if s.Name == "setup" {
			return f.running[s.Name][0].wait(ctx)
		}
		f.healthy(ctx, s.Name)
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

// healthy waits for the health checks of a service.
func (f *farm) healthy(ctx context.Context, service string) {
	f.t.Helper()
	check := f.project.Services[service].HealthCheck
	if check == nil {
		return
	}
	for _, r := range f.running[service] {
		eventually(ctx, f.t, func() error {
			select {
			case <-r.done:
				return fmt.Errorf("%s ended: %s", r.name, r.output.String())
			default:
				return r.exec(ctx, check.Test[1:]...)
			}
		})
	}
}

// container returns the container of a service.
func (f *farm) container(s *types.ServiceConfig, name string) container {
	f.t.Helper()
	c := container{name: name, network: name, user: 65532, host: s.Image != "tilth:service"}
	if s.User != "" {
		user, err := strconv.ParseUint(strings.Split(s.User, ":")[0], 10, 32)
		if err != nil {
			f.t.Fatal(err)
		}
		c.user = uint32(user)
	}
	c.env = []string{"XDG_DATA_HOME=/var/lib", "XDG_CACHE_HOME=/var/cache"} // as in the Dockerfile
	entrypoint := []string{"/usr/local/bin/tilth"}
	if s.Name == "prometheus" {
		c.user, c.env, entrypoint = 65534, nil, []string{"/usr/bin/prometheus"}
	}
	if s.Entrypoint != nil {
		entrypoint = s.Entrypoint
	}
	c.args = slices.Concat(entrypoint, []string(s.Command))
	for _, added := range s.CapAdd {
		c.capabilities = append(c.capabilities, "CAP_"+added)
	}
	for _, line := range s.Tmpfs {
		path, options, _ := strings.Cut(line, ":")
		m := specs.Mount{Type: "tmpfs", Source: "tmpfs", Destination: path, Options: []string{"noexec", "nosuid", "nodev"}}
		for option := range strings.SplitSeq(options, ",") {
			m.Options = append(slices.DeleteFunc(m.Options, func(said string) bool { return said == "no"+option }), option)
		}
		c.mounts = append(c.mounts, m)
	}
	for _, v := range s.Volumes {
		access := "rw"
		if v.ReadOnly {
			access = "ro"
		}
		source := v.Source
		if v.Type == types.VolumeTypeVolume {
			source = f.volume(v.Source, int(c.user))
		}
		c.mounts = append(c.mounts, bind(source, v.Target, access))
	}
	return c
}

// volume returns the folder of a volume. The user of the first service that mounts it owns it, like the images'
// folders; TestDockerfileMakesFoldersOfVolumes checks these.
func (f *farm) volume(name string, user int) string {
	f.t.Helper()
	dir := filepath.Join(f.volumes, name)
	if err := os.Mkdir(dir, 0o755); errors.Is(err, os.ErrExist) {
		return dir
	}
	mode := os.FileMode(0o755)
	if name == "host-lock" {
		mode = 0o700
	}
	if err := errors.Join(os.Chmod(dir, mode), os.Chown(dir, user, user)); err != nil {
		f.t.Fatal(err)
	}
	return dir
}

// tilth runs a client command in a container of the farm's network, in a folder with the clients' secrets.
func (f *farm) tilth(ctx context.Context, line string) (string, error) {
	work := filepath.Join(f.volumes, "client-secrets")
	c := container{
		name: "client", network: "client", user: 65532, host: true, dir: "/work",
		args: append([]string{"/usr/local/bin/tilth"}, strings.Fields(line)...),
		env:  []string{"XDG_DATA_HOME=/work", "XDG_CACHE_HOME=/work", "TILTH_TLS_CA=ca.crt", "TILTH_TOKEN_FILE=client.token"},
		mounts: []specs.Mount{
			bind(work, "/work", "rw"), {Type: "tmpfs", Source: "tmpfs", Destination: "/tmp", Options: []string{"mode=1777"}},
		},
	}
	r := start(f.t, c)
	err := r.wait(ctx)
	_ = runc("delete", "--force", c.name).Run() // runc deletes it after a clean exit
	return r.output.String(), err
}

var jobID = regexp.MustCompile(`\bjob-[\w.-]+`)

// TestComposeRunsAFarm runs the services of docker-compose.yml, except Grafana, with their commands, users,
// capabilities, mounts and health checks, and follows deploy/README.md.
func TestComposeRunsAFarm(t *testing.T) {
	needContainers(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p := project(t)
	prometheus := p.Services["prometheus"]
	prometheus.HealthCheck = nil // Debian's promtool lacks this command
	p.Services["prometheus"] = prometheus
	f := &farm{t: t, project: p, volumes: t.TempDir(), hosts: map[string][]int{}, running: map[string][]*running{}}
	for dir := f.volumes; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := addNetwork("client", 250); err != nil {
		t.Fatal(err)
	}
	since := time.Now()
	f.up(ctx, "setup", "tracker", "tuner", "builder", "runner", "prometheus")
	f.secretsAreApart()
	must := func(line, want string) string {
		t.Helper()
		said, err := f.tilth(ctx, line)
		if err != nil || !strings.Contains(said, want) {
			t.Fatalf("tilth %s: %v, want %q: %s", line, err, want, said)
		}
		return said
	}
	const tracker = " --tracker tracker:9190"
	must("model bert-tiny --seq 16 -o model.onnx", "")
	job := jobID.FindString(must("jobs submit model.onnx --time 10m"+tracker, "job-"))
	f.prometheus().seesTheFarm(ctx, t, map[string]int{"tracker": 1, "tuner": 1, "builder": 2, "runner": 1, "prometheus": 1})
	f.prometheus().showsPanels(ctx, t, since)
	must("jobs cancel "+job+tracker, "")
	must("tune model.onnx --trials 32 --quiet"+tracker, ": done")
	must("compile model.onnx -o model.tar"+tracker, "of 10 tasks tuned")
	must("run model.tar"+tracker, "pooler_output f32[1 128]")

	// A restarted tracker loses no data.
	jobs := must("jobs list"+tracker, job)
	r := f.running["tracker"][0]
	if err := r.stop(30 * time.Second); err != nil {
		t.Fatal(err)
	}
	f.running["tracker"][0] = start(t, r.container)
	f.healthy(ctx, "tracker")
	eventually(ctx, t, func() error {
		said, err := f.tilth(ctx, "devices list"+tracker)
		if err == nil && !strings.Contains(said, "runner") {
			err = fmt.Errorf("the runner is not back: %s", said)
		}
		return err
	})
	if again := must("jobs list"+tracker, job); again != jobs {
		t.Errorf("the tracker's jobs were\n%s\nand are after its restart\n%s", jobs, again)
	}
	for _, service := range []string{"prometheus", "runner", "builder", "tuner", "tracker"} {
		for _, r := range f.running[service] {
			if err := r.stop(30 * time.Second); err != nil {
				t.Error(err)
			}
		}
	}
}

func (f *farm) prometheus() *prometheus {
	return &prometheus{base: fmt.Sprintf("http://%s%d:9090", subnet, f.hosts["prometheus"][0])}
}

// secretsAreApart checks the owners and modes of the files that setup.sh creates.
func (f *farm) secretsAreApart() {
	f.t.Helper()
	for file, want := range map[string]string{
		"authority/ca.key":                 "0:0 -rw-------",
		"tracker-secrets/tracker.key":      "65532:65532 -rw-------",
		"agent-secrets/agent.token":        "65532:65532 -rw-------",
		"client-secrets/admin.token":       "65532:65532 -rw-------",
		"metrics-secrets":                  "65534:65534 drwx--x--x",
		"metrics-secrets/metrics.token":    "65534:65534 -rw-------",
		"metrics-secrets/grafana.password": "472:0 -rw-------",
	} {
		info, err := os.Stat(filepath.Join(f.volumes, file))
		if err != nil {
			f.t.Error(err)
			continue
		}
		owner := info.Sys().(*syscall.Stat_t)
		if got := fmt.Sprintf("%d:%d %v", owner.Uid, owner.Gid, info.Mode()); got != want {
			f.t.Errorf("%s is %s, want %s", file, got, want)
		}
	}
	keys, err := filepath.Glob(filepath.Join(f.volumes, "*", "ca.key"))
	if err != nil || len(keys) != 1 {
		f.t.Errorf("the authority's key is at %v, %v; want it in its own volume alone", keys, err)
	}
}

// TestReadmesFarmRunsForAnOrdinaryUser runs the commands of README's "A farm in five commands" verbatim, as a user
// who may only write to a home and to /tmp. The model is small, and the last command ends after a few trials.
func TestReadmesFarmRunsForAnOrdinaryUser(t *testing.T) {
	needContainers(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	const user = 1000
	if err := addNetwork("laptop", 200); err != nil {
		t.Fatal(err)
	}
	home, tmp := filepath.Join(t.TempDir(), "home"), filepath.Join(t.TempDir(), "tmp")
	for _, dir := range []string{home, tmp} {
		err := errors.Join(os.Mkdir(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(filepath.Dir(filepath.Dir(dir)), 0o755), os.Chown(dir, user, user))
		if err != nil {
			t.Fatal(err)
		}
	}
	terminals := 0
	terminal := func(command string) *running {
		terminals++
		return start(t, container{
			name: fmt.Sprintf("terminal-%d", terminals), network: "laptop", args: strings.Fields(command), env: []string{"HOME=/home/user"},
			dir: "/home/user", user: user, host: true, mounts: []specs.Mount{bind(home, "/home/user", "rw"), bind(tmp, "/tmp", "rw")},
		})
	}
	commands := readmeFarm(t)
	if err := terminal("tilth model mlp -o resnet18.onnx").wait(ctx); err != nil {
		t.Fatal(err)
	}
	var services []*running
	for _, command := range commands[:4] {
		services = append(services, terminal(command))
	}
	eventually(ctx, t, func() error {
		list := terminal("tilth devices list")
		err := list.wait(ctx)
		if err == nil && !strings.Contains(list.output.String(), "rack=3") {
			err = fmt.Errorf("the runner is not there: %s", list.output.String())
		}
		return err
	})
	tune := terminal(commands[4] + " --trials 16 --quiet")
	if err := tune.wait(ctx); err != nil || !strings.Contains(tune.output.String(), "done") {
		t.Errorf("the job is not done: %v: %s", err, tune.output.String())
	}
	for _, s := range services {
		if err := s.stop(30 * time.Second); err != nil {
			t.Error(err)
		}
	}
}

// readmeFarm returns the commands of the section, without their comments.
func readmeFarm(t *testing.T) (commands []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "## A farm in five commands\n\n")
	block, _, _ := strings.Cut(section, "\n\n")
	for line := range strings.Lines(block) {
		command, _, _ := strings.Cut(strings.TrimSpace(line), "#")
		commands = append(commands, strings.TrimSpace(command))
	}
	if !found || len(commands) != 5 {
		t.Fatalf("README's farm has the commands %q, want five", commands)
	}
	return commands
}
