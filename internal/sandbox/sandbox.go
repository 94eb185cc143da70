package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Mode selects how to proceed when a layer is unavailable.
type Mode string

const (
	// Required fails if a layer is missing without a substitute.
	Required Mode = "required"
	// BestEffort uses the available layers.
	BestEffort Mode = "best-effort"
	// Off applies limits only.
	Off Mode = "off"
)

// Sandbox starts programs with the layers that this machine provides. It is safe for concurrent use. A nil
// Sandbox applies limits only.
type Sandbox struct {
	// rootDir is an empty folder to mount the new root on.
	rootDir string
	// added lists machine-specific library folders, which every program sees.
	added  []string
	states []State
	// has holds the available layers.
	has map[Layer]bool
	// id is the different user and group, or 0. namespace is set if a user namespace replaces it.
	id        int
	namespace bool
	// pivots is set if Files uses a separate root; otherwise landlock is the ABI version that implements it.
	pivots   bool
	landlock int
	// ownProc is set if /proc can be mounted in a process namespace.
	ownProc bool
	groups  *groups
}

// flags holds the clone flags of layers that are namespaces.
var flags = map[Layer]uintptr{Processes: unix.CLONE_NEWPID, Network: unix.CLONE_NEWNET, IPC: unix.CLONE_NEWIPC, Hostname: unix.CLONE_NEWUTS}

// Open tests each layer with a process that does nothing. dir is a folder private to the sandbox. With
// Required, the error names each missing layer.
func Open(mode Mode, dir string) (*Sandbox, error) {
	s := &Sandbox{rootDir: filepath.Join(dir, "root"), added: addedLibraries(libraryFolders()), has: map[Layer]bool{}}
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

// Close releases the resources of Open.
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

// Only returns a sandbox restricted to the given layers, as far as s has them. It must not outlive s. Without
// Files, it drops Processes if programs could not have their own /proc.
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
		one.id = 0 // a user namespace stays because the other layers depend on it
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

// leaveOut drops a layer for programs that its state excepts.
func (s *Sandbox) leaveOut(layer Layer) {
	delete(s.has, layer)
	for k, state := range s.states {
		if state.Layer == layer {
			s.states[k] = State{Layer: layer, Missing: state.Except}
		}
	}
}

// States returns the state of each layer in a fixed order, or nothing if the sandbox is off.
func (s *Sandbox) States() []State { return slices.Clone(s.states) }

// Missing returns the unavailable layers without a substitute, each with the reason.
func (s *Sandbox) Missing() []string {
	var missing []string
	for _, state := range s.states {
		if state.How == "" && state.Substitute == "" {
			missing = append(missing, fmt.Sprintf("%s: %s", state.Layer, state.Missing))
		}
	}
	return missing
}

// isolate adds the first part of a child's script, which needs the privileges dropped later. files lists the
// visible files.
func (s *Sandbox) isolate(c *script, files []string, processes bool) error {
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

// dropPrivileges adds the second part, which drops privileges.
func (s *Sandbox) dropPrivileges(c *script) {
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

// cloneFlags returns the flags of all available namespaces.
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

// Layer is one isolation mechanism of a process. Any of them may be unavailable on a machine.
type Layer string

const (
	// User runs programs as a different user, or in a user namespace.
	User Layer = "user"
	// Processes hides other processes, which can neither be seen nor signalled. All processes end with the first.
	Processes Layer = "processes"
	// Network removes network access, including loopback.
	Network Layer = "network"
	// IPC hides System V objects and message queues.
	IPC Layer = "ipc"
	// Hostname hides the host name.
	Hostname Layer = "hostname"
	// Files shows only the named files, read-only.
	Files Layer = "files"
	// Privileges drops all privileges, also those of set-user-ID programs.
	Privileges Layer = "privileges"
	// Calls refuses system calls that kernels do not need.
	Calls Layer = "calls"
	// Memory uses a control group to limit memory and processes, so that their exhaustion is detected.
	Memory Layer = "memory"
)

// State reports whether this machine provides a layer.
type State struct {
	Layer Layer
	// How describes the mechanism, such as "user 65000"; empty if the layer is missing.
	How string
	// Except names programs that run without an available layer, and the reason. It may be empty.
	Except string
	// Missing is why the layer is unavailable, with the remedy.
	Missing string
	// Substitute names what replaces a missing layer.
	Substitute string
}

// try tests which layers are available, each on top of the previous ones. Without privileges, the user
// namespace enables the others.
func (s *Sandbox) try() error {
	s.tryUser()
	s.tryProcesses()
	for _, layer := range []Layer{Network, IPC, Hostname} {
		s.attempt(layer, "a namespace", func() {})
	}
	s.attempt(Privileges, "none, for good", func() {}) // without it only root may use Landlock and filters
	s.tryFiles()
	s.checkReach()
	s.attempt(Calls, "a filter of system calls", func() {})
	s.tryMemory()
	if err := s.probe(); err != nil {
		return fmt.Errorf("sandbox: the layers that this machine has do not go together: %w: run with --sandbox off", err)
	}
	return nil
}

// probe starts a process with the layers found so far, which exits immediately.
func (s *Sandbox) probe() error {
	c := &script{}
	defer c.release()
	if err := s.isolate(c, nil, false); err != nil {
		return err
	}
	s.dropPrivileges(c)
	if s.has[Files] && !s.pivots {
		if err := c.landlock(s.landlock, s.added, nil); err != nil {
			return err
		}
	}
	if s.has[Calls] {
		c.filter(Command{}.rules(s.has[Processes]))
	}
	c.add("exit", unix.SYS_EXIT_GROUP, 0)
	group, err := s.groups.open(Limits{})
	if err != nil {
		return err
	}
	p, err := c.run(s.cloneFlags(), group.descriptor())
	if err != nil {
		return errors.Join(err, group.close())
	}
	_, err = p.Wait()
	return errors.Join(err, group.close())
}

// attempt adds a layer if a process starts with it, and records the result.
func (s *Sandbox) attempt(layer Layer, how string, undo func()) bool {
	s.has[layer] = true
	err := s.probe()
	if err == nil {
		s.states = append(s.states, State{Layer: layer, How: how})
		return true
	}
	undo()
	delete(s.has, layer)
	s.states = append(s.states, State{Layer: layer, Missing: reason(err)})
	return false
}

// reason adds the remedy to an error.
func reason(err error) string {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return err.Error() + ": run as root, or on a kernel that lets users have namespaces"
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EINVAL), errors.Is(err, unix.EOPNOTSUPP):
		return err.Error() + ": the kernel is too old or built without it"
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EUSERS):
		return err.Error() + ": raise the limits in /proc/sys/user"
	}
	return err.Error()
}

// tryUser uses a different user's ids as root, or else a user namespace.
func (s *Sandbox) tryUser() {
	if os.Geteuid() != 0 {
		s.namespace = true
		s.attempt(User, "a user namespace", func() { s.namespace = false })
		return
	}
	id, err := freeID()
	if err != nil {
		s.states = append(s.states, State{Layer: User, Missing: err.Error()})
		return
	}
	s.id = id
	s.attempt(User, fmt.Sprintf("user %d", id), func() { s.id = 0 })
}

// tryProcesses uses a process namespace, with its own /proc if possible.
func (s *Sandbox) tryProcesses() {
	const how = "a namespace"
	s.ownProc = true
	if s.attempt(Processes, how, func() { s.ownProc = false }) {
		return
	}
	with := s.states[len(s.states)-1]
	s.states = s.states[:len(s.states)-1]
	if s.attempt(Processes, how, func() {}) {
		s.states[len(s.states)-1].Except = "programs that see the machine's files, such as a device's driver: " + with.Missing
	}
}

// tryFiles uses a separate root, or else Landlock.
func (s *Sandbox) tryFiles() {
	s.pivots = true
	if s.attempt(Files, "a root of its own", func() { s.pivots = false }) {
		return
	}
	version, err := landlockVersion()
	if err != nil {
		return
	}
	s.landlock = version
	own := s.states[len(s.states)-1]
	s.states = s.states[:len(s.states)-1]
	if !s.attempt(Files, fmt.Sprintf("Landlock version %d", version), func() {}) {
		s.states[len(s.states)-1].Missing = own.Missing + "; Landlock: " + s.states[len(s.states)-1].Missing
	}
}

// checkReach returns to the runner's own user if a different one could not reach the files, which stay in
// place without a separate root.
func (s *Sandbox) checkReach() {
	if s.id == 0 || s.pivots {
		return
	}
	if dir := closed(s.rootDir); dir != "" {
		s.states[0] = State{Layer: User, Missing: fmt.Sprintf("another user cannot enter %s: choose a --cache folder that others may enter", dir)}
		s.id = 0
		delete(s.has, User)
	}
}

// tryMemory uses a control group. Without it, per-process limits suffice, because processes cannot start others.
func (s *Sandbox) tryMemory() {
	groups, err := openGroups()
	if err == nil {
		s.groups = groups
		if s.attempt(Memory, "a control group", func() { s.groups = nil }) {
			return
		}
		err = errors.New(s.states[len(s.states)-1].Missing)
		s.states = s.states[:len(s.states)-1]
	}
	s.states = append(s.states, State{Layer: Memory, Missing: err.Error(), Substitute: "limits of the process"})
}
