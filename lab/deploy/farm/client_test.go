package farm

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/lab/deploy/container"
)

// client is a user's shell on the machine, with the program of an image.
type client struct {
	t       *testing.T
	space   *container.Namespace
	program string
	dir     string
}

// newClient gives a user copies of the secrets that are for clients.
func newClient(t *testing.T, space *container.Namespace, from container.Image, secrets string) *client {
	t.Helper()
	program, err := from.File("/usr/local/bin/tilth")
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, space: space, program: program, dir: t.TempDir()}
	for _, name := range []string{"ca.crt", "client.token"} {
		text, err := os.ReadFile(filepath.Join(secrets, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(c.dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// onFarm are the flags by which clients reach a farm.
func onFarm(tracker string) string {
	return " --tracker " + tracker + " --tls-ca ca.crt --token-file client.token"
}

// tilth runs a command line, in words that are separated by blanks, and returns what it prints.
func (c *client) tilth(ctx context.Context, line string) string {
	c.t.Helper()
	said, err := c.try(ctx, line)
	if err != nil {
		c.t.Fatal(err)
	}
	return said
}

// says fails the test unless a command line prints something.
func (c *client) says(ctx context.Context, line, want string) {
	c.t.Helper()
	if said := c.tilth(ctx, line); !strings.Contains(said, want) {
		c.t.Errorf("tilth %s does not say %q: %s", line, want, said)
	}
}

func (c *client) try(ctx context.Context, line string) (string, error) {
	run := exec.CommandContext(ctx, c.program, strings.Fields(line)...)
	run.Dir, run.Env = c.dir, append(os.Environ(), "XDG_CACHE_HOME="+c.dir, "XDG_DATA_HOME="+c.dir)
	var said bytes.Buffer
	run.Stdout, run.Stderr = &said, &said
	if err := c.space.Do(run.Run); err != nil {
		return said.String(), fmt.Errorf("tilth %s: %w: %s", line, err, &said)
	}
	return said.String(), nil
}
