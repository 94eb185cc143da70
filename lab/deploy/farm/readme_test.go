package farm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/tilth-dev/tilth/lab/deploy/container"
)

// TestReadmesFarmRunsForAnOrdinaryUser runs the commands of "A farm in five commands" as they are written, as a user
// who may write to a home and to /tmp only. The model is a small one, and the last command ends after a few trials.
func TestReadmesFarmRunsForAnOrdinaryUser(t *testing.T) {
	container.Need(t)
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	u := newUser(ctx, t)
	commands := readmeFarm(t)
	u.ends(ctx, "tilth model mlp -o resnet18.onnx")
	var running []*container.Container
	t.Cleanup(func() {
		for _, c := range running {
			if t.Failed() {
				t.Logf("%s: %s", strings.Join(c.Args, " "), c.LastWords())
			}
		}
	})
	for _, command := range commands[:4] {
		running = append(running, u.starts(command))
	}
	eventually(ctx, t, func() error {
		for _, c := range running {
			select {
			case <-c.Done():
				t.Fatalf("%s ended: %s", strings.Join(c.Args, " "), c.LastWords())
			default:
			}
		}
		said, err := u.try(ctx, "tilth devices list")
		if err == nil && !strings.Contains(said, "rack=3") {
			err = fmt.Errorf("the runner is not there: %s", said)
		}
		return err
	})
	if said := u.ends(ctx, commands[4]+" --trials 16 --quiet"); !strings.Contains(said, "done") {
		t.Errorf("the job is not done: %s", said)
	}
	for _, c := range running {
		if err := c.Stop(30 * time.Second); err != nil {
			t.Error(err)
		}
	}
}

// readmeFarm are the commands of the section, without their comments.
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

// user has terminals on a machine where a farm's programs are installed.
type user struct {
	t         *testing.T
	machine   *container.Machine
	image     container.Image
	dir       string
	terminals int
}

// userID is none that the image knows.
const userID = 1000

func newUser(ctx context.Context, t *testing.T) *user {
	t.Helper()
	machine, err := container.NewMachine("user")
	if err != nil {
		t.Fatal(err)
	}
	u := &user{t: t, machine: machine, image: ourImages(ctx, t)["tilth:host"], dir: t.TempDir()}
	for name, mode := range map[string]os.FileMode{"home": 0o700, "tmp": 0o777 | os.ModeSticky} {
		dir := filepath.Join(u.dir, name)
		err := os.Mkdir(dir, 0o700)
		if err == nil {
			err = os.Chmod(dir, mode)
		}
		if err == nil {
			err = os.Chown(dir, userID, userID)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return u
}

// starts runs a command in a terminal of its own.
func (u *user) starts(command string) *container.Container {
	u.t.Helper()
	u.terminals++
	from := u.image
	// The variables are the image's, which is for a service.
	from.Config.Env = nil
	c, err := u.machine.Start(container.Spec{
		Name: fmt.Sprintf("terminal-%d", u.terminals), Hostname: "laptop", Image: from, Args: strings.Fields(command),
		Env: []string{"HOME=/home/user"}, Dir: "/home/user", User: userID, Group: userID, ReadOnly: true,
		Network: u.machine.Net, Mounts: []specs.Mount{
			container.Bind(filepath.Join(u.dir, "home"), "/home/user", false),
			container.Bind(filepath.Join(u.dir, "tmp"), "/tmp", false),
		},
	})
	if err != nil {
		u.t.Fatal(err)
	}
	return c
}

// ends runs a command to its end and returns what it prints.
func (u *user) ends(ctx context.Context, command string) string {
	u.t.Helper()
	said, err := u.try(ctx, command)
	if err != nil {
		u.t.Fatal(err)
	}
	return said
}

func (u *user) try(ctx context.Context, command string) (string, error) {
	u.t.Helper()
	c := u.starts(command)
	err := errors.Join(c.Wait(ctx), c.Remove())
	return c.LastWords(), err
}
