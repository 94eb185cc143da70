package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// programsVariable holds the folder of the Dockerfile's programs. It marks the process in namespaces.
const programsVariable = "TILTH_DEPLOY_TEST_PROGRAMS"

// TestMain builds the programs and runs the tests as the first process in new mount, PID and network namespaces. All
// of their processes and mounts end with it.
func TestMain(m *testing.M) {
	if os.Getenv(programsVariable) != "" {
		if err := enterNamespaces(); err != nil {
			fmt.Fprintln(os.Stderr, "prepare namespaces:", err)
			os.Exit(1)
		}
		os.Exit(m.Run())
	}
	if os.Geteuid() != 0 || slices.Contains(os.Args, "-test.short=true") {
		os.Exit(m.Run())
	}
	runInNamespaces()
}

// needContainers skips a test if containers cannot run.
func needContainers(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("slow: runs farms of containers")
	}
	if os.Getenv(programsVariable) == "" {
		t.Skip("only root can run containers")
	}
	for _, program := range []string{"runc", "ip", "prometheus"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%s is not installed: run scripts/packages.sh test", program)
		}
	}
}

// runInNamespaces builds the programs and restarts this process in namespaces.
func runInNamespaces() {
	dir, err := os.MkdirTemp("", "tilth-deploy-")
	if err == nil {
		err = os.Chmod(dir, 0o755) // MkdirTemp uses mode 0700
	}
	if err == nil {
		err = buildPrograms(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	inner := exec.Command("/proc/self/exe")
	for _, arg := range os.Args[1:] {
		if !strings.HasPrefix(arg, "-test.testlogfile=") { // the outer process writes it
			inner.Args = append(inner.Args, arg)
		}
	}
	inner.Env = append(os.Environ(), programsVariable+"="+dir)
	inner.Stdout, inner.Stderr = os.Stdout, os.Stderr
	inner.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL,
	}
	err = inner.Run()
	err = errors.Join(err, os.RemoveAll(dir))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// enterNamespaces detaches the mounts, mounts /proc, and prepares the folder of network namespaces.
func enterNamespaces() error {
	if err := os.MkdirAll("/run/netns", 0o755); err != nil {
		return err
	}
	return errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("proc", "/proc", "proc", 0, ""),
		unix.Mount("tmpfs", "/run/netns", "tmpfs", 0, ""),
		ip("link", "set", "lo", "up"),
		ip("link", "add", "farm", "type", "bridge"),
		ip("addr", "add", gateway+"/24", "dev", "farm"),
		ip("link", "set", "farm", "up"),
	)
}

func ip(args ...string) error {
	if said, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, said)
	}
	return nil
}

// Addresses of the containers' network. The tests have the first one and serve DNS there.
const (
	gateway = "172.30.0.1"
	subnet  = "172.30.0."
)

// addNetwork creates a network namespace with an address in the containers' network.
func addNetwork(name string, host int) error {
	wire := fmt.Sprintf("veth%d", host)
	return errors.Join(
		ip("netns", "add", name),
		ip("link", "add", wire, "type", "veth", "peer", "name", "eth0", "netns", name),
		ip("link", "set", wire, "master", "farm", "up"),
		ip("-n", name, "addr", "add", fmt.Sprint(subnet, host, "/24"), "dev", "eth0"),
		ip("-n", name, "link", "set", "eth0", "up"),
		ip("-n", name, "link", "set", "lo", "up"),
	)
}

// container describes a container.
type container struct {
	name, network string
	args, env     []string
	user          uint32
	capabilities  []string
	// host is set for images with compilers. It mounts the machine's /usr.
	host   bool
	mounts []specs.Mount
	dir    string
}

// running is a started container.
type running struct {
	container
	t      *testing.T
	cmd    *exec.Cmd
	output bytes.Buffer
	done   chan struct{}
}

func bind(source, destination string, options ...string) specs.Mount {
	return specs.Mount{Type: "bind", Source: source, Destination: destination, Options: append([]string{"rbind", "rprivate"}, options...)}
}

// start starts a container with runc, with Docker's seccomp filter, a read-only root and no new privileges.
func start(t *testing.T, c container) *running {
	t.Helper()
	bundle := t.TempDir()
	if err := os.Chmod(bundle, 0o755); err != nil {
		t.Fatal(err)
	}
	spec, err := c.spec(filepath.Join(bundle, "rootfs"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(spec)
	if err == nil {
		err = os.WriteFile(filepath.Join(bundle, "config.json"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	r := &running{container: c, t: t, cmd: runc("run", "--bundle", bundle, c.name), done: make(chan struct{})}
	r.cmd.Stdout, r.cmd.Stderr = &r.output, &r.output
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.done)
		_ = r.cmd.Wait() // the state has the status
	}()
	t.Cleanup(func() {
		_ = runc("delete", "--force", c.name).Run() // it may be gone
		<-r.done
		if t.Failed() {
			t.Logf("%s: %s", c.name, r.output.String())
		}
	})
	return r
}

func runc(args ...string) *exec.Cmd {
	return exec.Command("runc", append([]string{"--root", filepath.Join(os.Getenv(programsVariable), "runc")}, args...)...)
}

// spec creates the container's root and returns its runtime specification.
func (c *container) spec(rootfs string) (*specs.Spec, error) {
	programs := os.Getenv(programsVariable)
	for _, dir := range []string{"etc", "tmp", "usr/local/bin", "proc", "dev", "sys"} {
		if err := os.MkdirAll(filepath.Join(rootfs, dir), 0o755); err != nil {
			return nil, err
		}
	}
	if err := os.Chmod(filepath.Join(rootfs, "tmp"), 0o777|os.ModeSticky); err != nil { // runc copies this mode to the tmpfs
		return nil, err
	}
	mounts := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "mode=755", "size=65536k"}},
		{Destination: "/dev/shm", Type: "tmpfs", Source: "shm", Options: []string{"nosuid", "noexec", "nodev", "mode=1777", "size=65536k"}},
		{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "noexec", "nodev", "ro"}},
	}
	bin := filepath.Join(programs, "service")
	if c.host {
		bin = filepath.Join(programs, "host")
		mounts = append(mounts, bind("/usr", "/usr", "ro"))
		for _, name := range []string{"/etc/alternatives", "/etc/ld.so.cache", "/etc/ssl"} {
			mounts = append(mounts, bind(name, name, "ro"))
		}
		for _, link := range []string{"bin", "sbin", "lib", "lib64"} {
			if err := os.Symlink("usr/"+link, filepath.Join(rootfs, link)); err != nil {
				return nil, err
			}
		}
	}
	mounts = append(mounts, bind(bin, "/usr/local/bin", "ro"))
	for name, text := range map[string]string{"resolv.conf": "nameserver " + gateway + "\n", "hosts": "127.0.0.1\tlocalhost\n"} {
		path := filepath.Join(rootfs, "..", name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return nil, err
		}
		mounts = append(mounts, bind(path, "/etc/"+name, "ro"))
	}
	mounts = append(mounts, c.mounts...)
	for _, m := range c.mounts { // mount points in the read-only root
		if err := makeMountPoint(filepath.Join(rootfs, m.Destination), m); err != nil {
			return nil, err
		}
	}
	env := append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, c.env...)
	capabilities := &specs.LinuxCapabilities{Bounding: c.capabilities}
	if c.user == 0 {
		capabilities.Effective, capabilities.Permitted = c.capabilities, c.capabilities
	}
	dir := c.dir
	if dir == "" {
		dir = "/"
	}
	spec := &specs.Spec{
		Version: "1.0.2", Hostname: c.name, Root: &specs.Root{Path: rootfs, Readonly: true}, Mounts: mounts,
		Process: &specs.Process{
			User: specs.User{UID: c.user, GID: c.user}, Args: c.args, Env: env, Cwd: dir, Capabilities: capabilities, NoNewPrivileges: true,
		},
		Linux: &specs.Linux{
			CgroupsPath: "/tilth-" + c.name,
			MaskedPaths: []string{"/proc/kcore", "/proc/keys", "/sys/firmware"},
			ReadonlyPaths: []string{
				"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger",
			},
			Resources: &specs.LinuxResources{Devices: []specs.LinuxDeviceCgroup{{Access: "rwm"}}},
			Namespaces: []specs.LinuxNamespace{
				{Type: specs.MountNamespace}, {Type: specs.PIDNamespace}, {Type: specs.IPCNamespace}, {Type: specs.UTSNamespace},
				{Type: specs.NetworkNamespace, Path: "/run/netns/" + c.network},
			},
		},
	}
	var err error
	spec.Linux.Seccomp, err = seccomp.GetDefaultProfile(spec)
	return spec, err
}

func makeMountPoint(at string, m specs.Mount) error {
	if info, err := os.Stat(m.Source); m.Type == "bind" && err == nil && !info.IsDir() {
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		return os.WriteFile(at, nil, 0o644)
	}
	return os.MkdirAll(at, 0o755)
}

// wait waits until the container has ended with status 0.
func (r *running) wait(ctx context.Context) error {
	select {
	case <-r.done:
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", r.name, context.Cause(ctx))
	}
	if code := r.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("%s ended with status %d: %s", r.name, code, r.output.String())
	}
	return nil
}

// exec runs a command in the container.
func (r *running) exec(ctx context.Context, args ...string) error {
	c := runc(append([]string{"exec", r.name}, args...)...)
	c = exec.CommandContext(ctx, c.Path, c.Args[1:]...)
	c.WaitDelay = time.Second
	if said, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s in %s: %w: %s", strings.Join(args, " "), r.name, err, said)
	}
	return nil
}

// stop asks the container to end. It must do so with status 0 within its grace period.
func (r *running) stop(grace time.Duration) error {
	if said, err := runc("kill", r.name, "TERM").CombinedOutput(); err != nil {
		return fmt.Errorf("stop %s: %w: %s", r.name, err, said)
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	return r.wait(ctx)
}
