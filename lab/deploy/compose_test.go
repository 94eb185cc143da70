package deploy

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// project loads the compose file and its overrides like Compose, with validation.
func project(t *testing.T, changes ...string) *types.Project {
	t.Helper()
	var files []string
	for _, name := range append([]string{"docker-compose.yml"}, changes...) {
		files = append(files, filepath.Join(root, name))
	}
	options, err := cli.NewProjectOptions(files, cli.WithName("tilth"), cli.WithOsEnv)
	if err != nil {
		t.Fatal(err)
	}
	p, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestComposeFileIsAWholeFarm(t *testing.T) {
	p := project(t)
	want := []string{"builder", "grafana", "prometheus", "runner", "setup", "tracker", "tuner"}
	if got := p.ServiceNames(); !slices.Equal(got, want) {
		t.Errorf("services are %v, want %v", got, want)
	}
}

// TestEveryServiceHasMemoryAndPidLimits keeps one service from taking the machine of the others.
func TestEveryServiceHasMemoryAndPidLimits(t *testing.T) {
	for _, p := range []*types.Project{project(t), project(t, withDatabase)} {
		for name, s := range p.Services {
			if s.MemLimit <= 0 || s.PidsLimit <= 0 {
				t.Errorf("%s may take %d bytes of memory and %d processes, 0 is no limit", name, s.MemLimit, s.PidsLimit)
			}
		}
	}
}

// withDatabase is the override for a database.
const withDatabase = "docker-compose.postgres.yml"

func TestComposeHasTwoTrackersOnADatabase(t *testing.T) {
	p := project(t, withDatabase)
	want := []string{
		"builder", "database", "database-setup", "grafana", "prometheus", "runner", "setup", "tracker", "tracker-2", "tuner",
	}
	if got := p.ServiceNames(); !slices.Equal(got, want) {
		t.Errorf("services are %v, want %v", got, want)
	}
	first, second := p.Services["tracker"], p.Services["tracker-2"]
	if !slices.Equal(first.Command, second.Command) || len(first.Volumes) != len(second.Volumes) || second.Ports[0].Published == first.Ports[0].Published {
		t.Errorf("the trackers differ in more than their ports: %v, %v", first.Command, second.Command)
	}
	for _, network := range []string{"farm", "outside"} {
		if !slices.Contains(second.Networks[network].Aliases, "tracker") {
			t.Errorf("agents of the network %s do not find the second tracker", network)
		}
	}
	for name, s := range p.Services {
		_, records := s.Networks["records"]
		if is := strings.HasPrefix(name, "tracker") || name == "database"; records != is {
			t.Errorf("%s reaches the database: %v", name, records)
		}
	}
	if d := second.DependsOn["tracker"]; d.Condition != types.ServiceConditionHealthy {
		t.Error("which tracker is the first is left to chance, and agents wait for one of them")
	}
}

// TestComposeTrackersServeSideBySideOnRequest checks that several trackers share a folder, but not an audit log.
func TestComposeTrackersServeSideBySideOnRequest(t *testing.T) {
	t.Setenv("TILTH_SHARDS", "4")
	p := project(t, withDatabase)
	logs := map[string]bool{}
	for _, name := range []string{"tracker", "tracker-2"} {
		env := p.Services[name].Environment
		if shards := env["TILTH_SHARDS"]; shards == nil || *shards != "4" {
			t.Errorf("%s is to have other shards than 4", name)
		}
		log := ""
		if text := env["TILTH_AUDIT_LOG"]; text != nil {
			log = *text
		}
		logs[log] = true
	}
	if len(logs) != 2 {
		t.Errorf("the trackers' audit logs are %v", logs)
	}
}

func TestComposePublishesNothingBeyondTheLoopback(t *testing.T) {
	for name, s := range project(t, withDatabase).Services {
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s publishes %s on %q", name, port.Published, port.HostIP)
			}
		}
		if s.NetworkMode == "host" || s.Privileged || s.Pid != "" || s.Ipc != "" {
			t.Errorf("%s shares too much with the host", name)
		}
	}
}

func TestComposeServicesHaveNoPrivileges(t *testing.T) {
	for name, s := range project(t, withDatabase).Services {
		if !s.ReadOnly || !slices.Contains(s.CapDrop, "ALL") || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
			t.Errorf("%s may do more than it needs: read-only %v, drops %v, %v", name, s.ReadOnly, s.CapDrop, s.SecurityOpt)
		}
		if strings.HasPrefix(s.User, "0") && !strings.HasSuffix(name, "setup") {
			t.Errorf("%s runs as root", name)
		}
		for _, v := range s.Volumes {
			if strings.HasPrefix(v.Target, "/run/") && !v.ReadOnly {
				t.Errorf("%s may change its secrets", name)
			}
		}
	}
}

func TestComposeServicesAreWatched(t *testing.T) {
	for name, s := range project(t, withDatabase).Services {
		if strings.HasSuffix(name, "setup") {
			continue
		}
		if s.HealthCheck == nil || len(s.HealthCheck.Test) == 0 {
			t.Errorf("%s has no health check", name)
		}
		if s.Restart != "unless-stopped" {
			t.Errorf("%s is restarted %q", name, s.Restart)
		}
	}
}

// TestComposeImagesArePinned accepts a digest or an exact version.
func TestComposeImagesArePinned(t *testing.T) {
	for name, s := range project(t, withDatabase).Services {
		if s.Build == nil && !strings.HasPrefix(s.Image, "tilth:") && !pinned.MatchString(s.Image) {
			t.Errorf("%s runs %s, of which there may be another tomorrow", name, s.Image)
		}
	}
}

// TestComposeSecretsAreApart checks that services only mount their own kind of secrets.
func TestComposeSecretsAreApart(t *testing.T) {
	readers := map[string][]string{
		"authority": {"setup"}, "tracker-secrets": {"setup", "tracker", "tracker-2"}, "agent-secrets": {"builder", "runner", "setup", "tuner"},
		"metrics-secrets": {"grafana", "prometheus", "setup"}, "client-secrets": {"setup"},
		"database-secrets": {"database", "database-setup"}, "database-client-secrets": {"database-setup", "tracker", "tracker-2"},
	}
	mounted := map[string][]string{}
	for name, s := range project(t, withDatabase).Services {
		for _, v := range s.Volumes {
			if _, secret := readers[v.Source]; secret {
				mounted[v.Source] = append(mounted[v.Source], name)
			}
		}
	}
	for source, want := range readers {
		slices.Sort(mounted[source])
		if !slices.Equal(mounted[source], want) {
			t.Errorf("%s is mounted by %v, want %v", source, mounted[source], want)
		}
	}
}

// TestComposeAgentsStayInTheFarm checks that agents reach the tracker, but nothing beyond the farm.
func TestComposeAgentsStayInTheFarm(t *testing.T) {
	p := project(t, withDatabase)
	if !p.Networks["farm"].Internal {
		t.Error("the farm's network leads beyond it")
	}
	for _, name := range []string{"tuner", "builder", "runner"} {
		networks := slices.Collect(maps.Keys(p.Services[name].Networks))
		if !slices.Equal(networks, []string{"farm"}) || p.Services[name].NetworkMode != "" {
			t.Errorf("%s is in the networks %v", name, networks)
		}
	}
}
