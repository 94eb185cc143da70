package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tilth-dev/tilth/internal/loader"
)

// Mode is what to do about layers that cannot be had.
type Mode string

const (
	// Required refuses to go on when a layer is missing and nothing does its job.
	Required Mode = "required"
	// BestEffort goes on with those that can be had.
	BestEffort Mode = "best-effort"
	// Off has limits only.
	Off Mode = "off"
)

// ParseMode reads the name of a mode.
func ParseMode(name string) (Mode, error) {
	if m := Mode(name); slices.Contains([]Mode{Required, BestEffort, Off}, m) {
		return m, nil
	}
	return "", fmt.Errorf("sandbox mode %q: want required, best-effort or off", name)
}

// Sandbox starts programs with the layers that this machine has. It may be used by several goroutines. A nil one has
// limits only.
type Sandbox struct {
	// rootDir is an empty folder to mount the new root on.
	rootDir string
	// added are folders of shared libraries of this machine, which every program sees.
	added  []string
	states []State
	// has are the layers had.
	has map[Layer]bool
	// id is the other user and group; 0 = none. namespace says that there is a user namespace in its place.
	id        int
	namespace bool
	// pivots says that Files is a root of its own; otherwise landlock is the version that does it.
	pivots   bool
	landlock int
	// ownProc says that /proc can be mounted for a namespace of processes.
	ownProc bool
	groups  *groups
}

// flags are the clone flags of layers that are namespaces.
var flags = map[Layer]uintptr{Processes: unix.CLONE_NEWPID, Network: unix.CLONE_NEWNET, IPC: unix.CLONE_NEWIPC, Hostname: unix.CLONE_NEWUTS}

// Open tries each layer in a process that does nothing. dir is a folder of the sandbox's own, in which it makes what
// it needs. With Required, the error names each layer that is missing.
func Open(mode Mode, dir string) (*Sandbox, error) {
	s := &Sandbox{rootDir: filepath.Join(dir, "root"), added: addedLibraries(loader.Folders()), has: map[Layer]bool{}}
	if mode == Off {
		return s, nil
	}
	if err := os.MkdirAll(s.rootDir, 0o711); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	if err := s.try(); err != nil {
		return nil, err
	}
	if missing := s.Missing(); mode == Required && len(missing) > 0 {
		return nil, fmt.Errorf("sandbox: this machine has not all layers (%s): run with more rights, or with --sandbox best-effort", strings.Join(missing, "; "))
	}
	return s, nil
}

// Close gives up what Open made.
func (s *Sandbox) Close() error {
	if s == nil {
		return nil
	}
	err := os.Remove(s.rootDir)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, s.groups.close())
}

// Only is a sandbox with no other layers than those given, as far as this one has them. It lasts as long as this one.
// Without Files it has no Processes where programs could not have a /proc of their own.
func (s *Sandbox) Only(layers ...Layer) *Sandbox {
	if s == nil {
		return nil
	}
	one := *s
	one.has = map[Layer]bool{}
	for _, l := range layers {
		one.has[l] = s.has[l]
	}
	if !one.has[User] {
		one.id = 0 // a user namespace stays: it is what allows the others
	}
	if !one.has[Memory] {
		one.groups = nil
	}
	one.states = slices.DeleteFunc(slices.Clone(s.states), func(state State) bool { return !slices.Contains(layers, state.Layer) })
	if one.has[Processes] && !one.has[Files] && !one.ownProc {
		one.leaveOut(Processes)
	}
	return &one
}

// leaveOut does without a layer around programs that its state excepts.
func (s *Sandbox) leaveOut(layer Layer) {
	delete(s.has, layer)
	for k, state := range s.states {
		if state.Layer == layer {
			s.states[k] = State{Layer: layer, Missing: state.Except}
		}
	}
}

// States says of each layer whether it is in force, in a fixed order; empty when the sandbox is off.
func (s *Sandbox) States() []State { return slices.Clone(s.states) }

// Missing are the layers that are not had and whose job nothing else does, each with the reason.
func (s *Sandbox) Missing() []string {
	var missing []string
	for _, state := range s.states {
		if state.How == "" && state.Substitute == "" {
			missing = append(missing, fmt.Sprintf("%s: %s", state.Layer, state.Missing))
		}
	}
	return missing
}

// hide is the first part of a child's script: what needs the rights that it gives up later. Files are those that it
// sees.
func (s *Sandbox) hide(c *script, files []string, processes bool) error {
	if s.namespace {
		c.mapIDs(unix.Geteuid(), unix.Getegid())
	}
	if s.has[Hostname] {
		c.layer = Hostname
		c.add("forget the host's name", unix.SYS_SETHOSTNAME, c.text("sandbox"), uintptr(len("sandbox")))
	}
	if s.mountsProc() {
		c.newProc()
	}
	if s.has[Files] && s.pivots {
		r := c.newRoot(s.rootDir, s.added)
		if err := r.showAll(files); err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
		if processes {
			r.processes()
		}
		r.enter()
	}
	return nil
}

// yield is the second part: giving up rights.
func (s *Sandbox) yield(c *script) {
	if s.has[Privileges] {
		c.bound()
	}
	if s.id != 0 {
		c.become(s.id)
	}
	c.layer = Processes
	c.add("end with the runner", unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL))
	if s.has[Privileges] {
		c.unprivileged()
	}
}

// cloneFlags are those of all namespaces had.
func (s *Sandbox) cloneFlags() uintptr {
	var all uintptr
	for layer, flag := range flags {
		if s.has[layer] {
			all |= flag
		}
	}
	if s.namespace {
		all |= unix.CLONE_NEWUSER
	}
	if s.mountsProc() || s.has[Files] && s.pivots {
		all |= unix.CLONE_NEWNS
	}
	return all
}
