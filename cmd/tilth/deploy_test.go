package main

import (
	"bytes"
	"debug/elf"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/tilth-dev/tilth/internal/farm"
)

// commandLine is a command line in a file of deploy/, without the program's name.
type commandLine struct {
	where string
	args  []string
}

func readFile(t *testing.T, parts ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// composeCommands returns the command lines and health checks of the program's services.
func composeCommands(t *testing.T) (list []commandLine) {
	t.Helper()
	var file struct {
		Services map[string]struct {
			Image       string
			Entrypoint  []string
			Command     []string
			Healthcheck struct{ Test []string }
		}
	}
	if err := yaml.Unmarshal(readFile(t, "docker-compose.yml"), &file); err != nil {
		t.Fatal(err)
	}
	for name, s := range file.Services {
		if !strings.HasPrefix(s.Image, "tilth:") || s.Entrypoint != nil {
			continue
		}
		list = append(list, commandLine{"docker-compose.yml: " + name, s.Command})
		if len(s.Healthcheck.Test) < 3 || s.Healthcheck.Test[1] != "/usr/local/bin/tilth" {
			t.Errorf("the health check of %s does not ask the program: %v", name, s.Healthcheck.Test)
			continue
		}
		list = append(list, commandLine{"docker-compose.yml: health of " + name, s.Healthcheck.Test[2:]})
	}
	clear(file.Services) // in the override, the program's services have no image
	if err := yaml.Unmarshal(readFile(t, "docker-compose.postgres.yml"), &file); err != nil {
		t.Fatal(err)
	}
	for name, s := range file.Services {
		if s.Image == "" {
			list = append(list, commandLine{"docker-compose.postgres.yml: " + strings.TrimSuffix(name, "-2"), s.Command})
		}
	}
	return list
}

// kubernetesCommands returns the command lines of all containers.
func kubernetesCommands(t *testing.T) (list []commandLine) {
	t.Helper()
	for _, name := range []string{
		"kubernetes/tracker", "kubernetes/tuner", "kubernetes/builder", "kubernetes/runner", "kubernetes-postgres/tracker",
	} {
		decoder := yaml.NewDecoder(bytes.NewReader(readFile(t, "deploy", name+".yaml")))
		for {
			var object struct {
				Spec struct {
					Template struct {
						Spec struct {
							Containers []struct{ Args []string }
						}
					}
				}
			}
			if err := decoder.Decode(&object); err != nil {
				break
			}
			for _, c := range object.Spec.Template.Spec.Containers {
				list = append(list, commandLine{name, c.Args})
			}
		}
	}
	return list
}

var execStart = regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/tilth (.*)$`)

func units(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join("..", "..", "deploy", "systemd", "*.service"))
	if err != nil || len(list) != 4 {
		t.Fatalf("units are %v, %v; want four", list, err)
	}
	return list
}

func systemdCommands(t *testing.T) (list []commandLine) {
	t.Helper()
	for _, unit := range units(t) {
		text, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range execStart.FindAllStringSubmatch(string(text), -1) {
			list = append(list, commandLine{filepath.Base(unit), strings.Fields(m[1])})
		}
	}
	return list
}

// TestDeployedCommandLinesAreUnderstood catches renamed flags, which otherwise only fail when a farm starts.
func TestDeployedCommandLinesAreUnderstood(t *testing.T) {
	all := slices.Concat(composeCommands(t), kubernetesCommands(t), systemdCommands(t))
	if len(all) < 4+4+2+5+4 {
		t.Errorf("%d command lines were found: %v", len(all), all)
	}
	for _, line := range all {
		c, rest, err := newRoot(&app{}).Find(line.args)
		if err == nil && c.HasParent() {
			if err = c.ParseFlags(rest); err == nil {
				err = c.ValidateArgs(c.Flags().Args())
			}
			if f := c.Flags().Lookup("store"); err == nil && f != nil {
				err = checkStore(f.Value.String())
			}
		}
		if err != nil || !c.HasParent() {
			t.Errorf("%s: tilth %s: %v", line.where, strings.Join(line.args, " "), err)
		}
	}
}

// checkStore accepts a missing certificate of an authority.
func checkStore(address string) error {
	if _, err := farm.StoreKindOf(address); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// dropIn configures a database for records.
const dropIn = "tilth-tracker.service.d/postgres.conf"

var storeVariable = regexp.MustCompile(`(?m)^Environment=TILTH_STORE=(.*)$`)

func TestDropInNamesADatabase(t *testing.T) {
	m := storeVariable.FindSubmatch(readFile(t, "deploy", "systemd", dropIn))
	if m == nil {
		t.Fatal("it sets no TILTH_STORE")
	}
	if err := checkStore(string(m[1])); err != nil {
		t.Error(err)
	}
}

var storeFlag = regexp.MustCompile(`--(?:data|records)[ =](/var/lib/[\w./-]+)`)

// TestTrackersFolderIsTheSameEverywhere checks that all deployments use the documented folder.
func TestTrackersFolderIsTheSameEverywhere(t *testing.T) {
	const folder = "/var/lib/tilth/tracker"
	named := slices.Concat(composeCommands(t), kubernetesCommands(t), systemdCommands(t))
	documents, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(documents, "../../README.md", "../../deploy/README.md") {
		path = strings.TrimPrefix(path, "../../")
		named = append(named, commandLine{path, []string{string(readFile(t, path))}})
	}
	var examples func(c *cobra.Command)
	examples = func(c *cobra.Command) {
		named = append(named, commandLine{c.CommandPath(), []string{c.Example}})
		for _, sub := range c.Commands() {
			examples(sub)
		}
	}
	examples(newRoot(&app{}))
	found := 0
	for _, line := range named {
		for _, m := range storeFlag.FindAllStringSubmatch(strings.Join(line.args, " "), -1) {
			if found++; m[1] != folder && m[1] != folder+"/tilth.db" {
				t.Errorf("%s names %s, not %s", line.where, m[1], folder)
			}
		}
	}
	if found < 3+3+3 {
		t.Errorf("the folder was found %d times", found)
	}
}

// TestSetupCreatesTheFilesThatServicesRead compares the files of setup.sh with those that the services read, for each
// kind of reader.
func TestSetupCreatesTheFilesThatServicesRead(t *testing.T) {
	made := map[string]string{}
	var args []string
	for _, reader := range []string{"authority", "tracker", "agents", "metrics", "clients"} {
		made[reader] = filepath.Join(t.TempDir(), reader)
		if err := os.Mkdir(made[reader], 0o700); err != nil {
			t.Fatal(err)
		}
		args = append(args, made[reader])
	}
	script := filepath.Join("..", "..", "deploy", "docker", "setup.sh")
	token := filepath.Join(made["agents"], "agent.token")
	var first []byte
	for range 2 { // the second run keeps existing files
		if said, err := exec.CommandContext(t.Context(), "sh", append([]string{script}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("setup.sh: %v\n%s", err, said)
		}
		now, err := os.ReadFile(token)
		if err != nil || first != nil && !bytes.Equal(first, now) {
			t.Errorf("the agents' token was made anew, %v", err)
		}
		first = now
	}
	for _, line := range slices.Concat(composeCommands(t), kubernetesCommands(t)) {
		reader := "agents"
		if strings.HasSuffix(line.where, "tracker") {
			reader = "tracker"
		}
		for _, word := range line.args {
			if _, name, is := strings.Cut(word, "/run/tilth/"); is {
				if _, err := os.Stat(filepath.Join(made[reader], name)); err != nil {
					t.Errorf("%s reads what setup.sh does not make: %v", line.where, err)
				}
			}
		}
	}
	for _, name := range []string{"ca.crt", "metrics.token", "grafana.password"} {
		if _, err := os.Stat(filepath.Join(made["metrics"], name)); err != nil {
			t.Error(err)
		}
	}
	for _, reader := range []string{"tracker", "agents", "metrics", "clients"} {
		if _, err := os.Stat(filepath.Join(made[reader], "ca.key")); err == nil {
			t.Errorf("the authority's key is handed to the %s", reader)
		}
	}
}

func TestUnitsPassSystemdsOwnCheck(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Fatal("systemd-analyze is not installed: run scripts/packages.sh test")
	}
	program, err := exec.LookPath("tilth")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	args := []string{"verify", "--man=no"}
	for _, unit := range units(t) {
		text, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		// The program and its user may be missing on this machine.
		text = regexp.MustCompile(`(?m)^(User|Group)=tilth$`).ReplaceAll(text, []byte("$1=root"))
		text = bytes.ReplaceAll(text, []byte("/usr/local/bin/tilth"), []byte(program))
		path := filepath.Join(dir, filepath.Base(unit))
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
	}
	if err := os.Mkdir(filepath.Join(dir, filepath.Dir(dropIn)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, dropIn), readFile(t, "deploy", "systemd", dropIn), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.CommandContext(t.Context(), "systemd-analyze", args...).CombinedOutput(); err != nil || len(bytes.TrimSpace(said)) > 0 {
		t.Errorf("systemd-analyze: %v\n%s", err, said)
	}
}

var dockerBuild = regexp.MustCompile(`(?m)^RUN (CGO_ENABLED=0 go build -tags static .* -o) /out/tilth (\./cmd/tilth)$`)

// TestImagesProgramIsStatic checks that the program has no dependencies, because the image contains nothing else.
func TestImagesProgramIsStatic(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: builds the program with other tags")
	}
	m := dockerBuild.FindStringSubmatch(string(readFile(t, "deploy", "docker", "Dockerfile")))
	if m == nil {
		t.Fatal("the Dockerfile does not build the program as expected")
	}
	out := filepath.Join(t.TempDir(), "tilth")
	c := exec.CommandContext(t.Context(), "sh", "-c", m[1]+" "+out+" "+m[2])
	c.Dir, c.Env = filepath.Join("..", ".."), append(os.Environ(), "VERSION=test")
	if said, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", m[0], err, said)
	}
	f, err := elf.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the program wants a dynamic linker")
		}
	}
	if said, err := exec.CommandContext(t.Context(), out, "--version").CombinedOutput(); err != nil || !bytes.Contains(said, []byte("test")) {
		t.Errorf("version: %v, %s", err, said)
	}
}
