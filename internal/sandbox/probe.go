package sandbox

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

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
