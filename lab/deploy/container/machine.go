package container

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Machine runs containers. Its own network is apart from the one of who tests.
type Machine struct {
	// Dir has all of its files.
	Dir string
	// Net is where its bridges and published ports are.
	Net *Namespace
}

// NewMachine makes a machine with its files in a folder of the test's own.
func NewMachine(name string) (*Machine, error) {
	dir := filepath.Join(os.Getenv(folderVariable), name)
	if err := os.MkdirAll(filepath.Join(dir, "containers"), 0o711); err != nil {
		return nil, err
	}
	space, err := NewNamespace()
	if err != nil {
		return nil, err
	}
	return &Machine{Dir: dir, Net: space}, nil
}

// Start starts a container.
func (m *Machine) Start(spec Spec) (*Container, error) {
	c := &Container{Spec: spec, machine: m, bundle: filepath.Join(m.Dir, "containers", spec.Name),
		done: make(chan struct{})}
	if err := c.prepare(); err != nil {
		return nil, fmt.Errorf("container %s: %w", spec.Name, err)
	}
	log, err := os.Create(c.logPath())
	if err != nil {
		return nil, err
	}
	defer log.Close()
	c.run = m.runc("run", "--bundle", c.bundle, c.id())
	c.run.Stdout, c.run.Stderr = log, log
	if err := c.run.Start(); err != nil {
		return nil, fmt.Errorf("container %s: %w", spec.Name, err)
	}
	go func() {
		defer close(c.done)
		_ = c.run.Wait()
	}()
	return c, nil
}

// runc is a call of the runtime.
func (m *Machine) runc(args ...string) *exec.Cmd {
	return exec.Command("runc", append([]string{"--root", filepath.Join(m.Dir, "runc")}, args...)...)
}

// MountLayers mounts layers as one folder; writes go to upper.
func MountLayers(layers []string, upper, at string) error {
	work := upper + ".work"
	for _, dir := range []string{upper, work, at} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	lower := make([]string, 0, len(layers))
	for i := len(layers) - 1; i >= 0; i-- {
		lower = append(lower, layers[i])
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", strings.Join(lower, ":"), upper, work)
	if err := unix.Mount("overlay", at, "overlay", 0, options); err != nil {
		return fmt.Errorf("mount layers at %s: %w", at, err)
	}
	return nil
}

// prepare makes what runc calls a bundle: the files and the specification.
func (c *Container) prepare() error {
	root := filepath.Join(c.bundle, "rootfs")
	if err := MountLayers(c.Image.Layers, filepath.Join(c.bundle, "upper"), root); err != nil {
		return err
	}
	for _, v := range c.Volumes {
		mount, err := c.machine.mountVolume(v, root)
		if err != nil {
			return err
		}
		c.Mounts = append(c.Mounts, mount)
	}
	if err := c.writeNames(); err != nil {
		return err
	}
	if c.Dir == "" {
		c.Dir = c.Image.Config.WorkingDir
	}
	if c.Dir == "" {
		c.Dir = "/"
	}
	spec, err := c.runtimeSpec(root, "/"+c.id())
	if err != nil {
		return err
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.bundle, "config.json"), text, 0o600)
}

// writeNames writes how the container looks names up, and what it is called itself.
func (c *Container) writeNames() error {
	server, options := c.NameServer, "options ndots:0"
	if !server.IsValid() {
		server = NameServerAddr
	}
	if len(c.Search) > 0 {
		options = "search " + strings.Join(c.Search, " ") + "\noptions ndots:5"
	}
	files := map[string]string{
		"resolv.conf": fmt.Sprintf("nameserver %s\n%s\n", server,
			options), "hostname": c.Hostname + "\n", "hosts": "127.0.0.1\tlocalhost\n127.0.0.1\t" + c.Hostname + "\n",
	}
	if c.Network == nil {
		// It looks names up as this machine does.
		delete(files, "resolv.conf")
		c.Mounts = append(c.Mounts, Bind("/etc/resolv.conf", "/etc/resolv.conf", true))
	}
	for name, text := range files {
		path := filepath.Join(c.bundle, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
		c.Mounts = append(c.Mounts, Bind(path, "/etc/"+name, false))
	}
	return nil
}
