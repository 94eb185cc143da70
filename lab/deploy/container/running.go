package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Container is a container that was started.
type Container struct {
	Spec
	machine *Machine
	bundle  string
	run     *exec.Cmd
	done    chan struct{}
}

func (c *Container) id() string      { return filepath.Base(c.machine.Dir) + "-" + c.Name }
func (c *Container) logPath() string { return c.bundle + ".log" }

// Written is the folder of what the container wrote over its image's files.
func (c *Container) Written() string { return filepath.Join(c.bundle, "upper") }

// Done is closed when the container has ended.
func (c *Container) Done() <-chan struct{} { return c.done }

// ExitCode is its process' exit status, once it ended.
func (c *Container) ExitCode() int {
	<-c.done
	return c.run.ProcessState.ExitCode()
}

// Wait waits for its end and fails unless its exit status is 0.
func (c *Container) Wait(ctx context.Context) error {
	select {
	case <-c.done:
	case <-ctx.Done():
		return fmt.Errorf("container %s goes on: %w", c.Name, context.Cause(ctx))
	}
	if code := c.ExitCode(); code != 0 {
		return fmt.Errorf("container %s ended with status %d: %s", c.Name, code, c.LastWords())
	}
	return nil
}

// Remove takes away the mounts of a container that has ended.
func (c *Container) Remove() error {
	<-c.done
	return unix.Unmount(filepath.Join(c.bundle, "rootfs"), unix.MNT_DETACH)
}

// Exec runs a command in the container, as its user, with its rights, and returns what it prints.
func (c *Container) Exec(ctx context.Context, args ...string) (string, error) {
	run := c.machine.runc(append([]string{"exec", c.id()}, args...)...)
	run = withContext(ctx, run)
	said, err := run.CombinedOutput()
	if err != nil {
		return string(said), fmt.Errorf("%s in container %s: %w: %s", strings.Join(args, " "), c.Name, err, said)
	}
	return string(said), nil
}

func withContext(ctx context.Context, c *exec.Cmd) *exec.Cmd {
	bound := exec.CommandContext(ctx, c.Path, c.Args[1:]...)
	bound.WaitDelay = time.Second
	return bound
}

// Stop asks the container to end, and kills it when it has not within its grace.
func (c *Container) Stop(grace time.Duration) error {
	if err := c.signal("TERM"); err != nil {
		return err
	}
	patience := time.NewTimer(grace)
	defer patience.Stop()
	select {
	case <-c.done:
	case <-patience.C:
		return errors.Join(fmt.Errorf("container %s did not end within %v", c.Name, grace), c.signal("KILL"))
	}
	return c.Wait(context.Background())
}

func (c *Container) signal(name string) error {
	if said, err := c.machine.runc("kill", c.id(), name).CombinedOutput(); err != nil {
		return fmt.Errorf("signal %s to container %s: %w: %s", name, c.Name, err, said)
	}
	return nil
}

// Status is /proc/PID/status of its first process, by field, as seen from the machine.
func (c *Container) Status() (map[string]string, error) {
	said, err := c.machine.runc("state", c.id()).Output()
	if err != nil {
		return nil, fmt.Errorf("state of container %s: %w", c.Name, err)
	}
	var state specs.State
	if err := json.Unmarshal(said, &state); err != nil {
		return nil, fmt.Errorf("state of container %s: %w", c.Name, err)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", state.Pid))
	if err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		fields[name] = strings.Join(strings.Fields(value), " ")
	}
	return fields, nil
}

// LastWords are the last lines of what it printed.
func (c *Container) LastWords() string {
	text, err := os.ReadFile(c.logPath())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}
