package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Command is a program to start.
type Command struct {
	// Launcher, if set, is a command that runs the program, such as an emulator or a tool that sets its
	// priority. It is allowed more system calls than the program.
	Launcher []string
	// Program and Files are absolute paths, at which the program sees them.
	Program string
	Args    []string
	Files   []string
	// Executable, if set, is run instead of the file at Program, and is not visible inside.
	Executable *os.File
	// Events allows waiting for events (epoll), as Go programs do.
	Events bool
	// Environment is empty by default, except for GLIBC_TUNABLES, and Dir is the root.
	Environment []string
	Dir         string
	// Descriptors become 0, 1, 2 and so on. There are no others.
	Descriptors []*os.File
	Limits      Limits
}

// Process is a started program.
type Process struct {
	*os.Process
	group *group
}

// Start starts a program. If the Processes layer is available, everything that it started ends with it. It is
// killed when this process ends.
func (s *Sandbox) Start(c Command) (*Process, error) {
	s = cmp.Or(s, &Sandbox{})
	command, files, err := c.resolve()
	if err == nil {
		err = s.readable(files, c.Executable)
	}
	if err != nil {
		return nil, err
	}
	script := &script{}
	defer script.release()
	if err := s.prepare(script, c, files); err != nil {
		return nil, err
	}
	if s.has[Calls] {
		script.filter(c.rules(s.has[Processes]))
	}
	script.layer = ""
	script.add("let signals through", unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, at(script, new(uint64)), 0, unsafe.Sizeof(uint64(0)))
	script.execute(command, c)
	group, err := s.groups.open(c.Limits)
	if err != nil {
		return nil, err
	}
	p, err := s.begin(script, group)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sandbox: %w", err), group.close())
	}
	return &Process{p, group}, nil
}

// execute adds the last step of a script. QEMU's user emulation lacks execveat before version 9, so the same
// file is executed by its name or by that of its descriptor; the filter only allows execveat.
func (s *script) execute(command []string, c Command) {
	path, named, program := command[0], command[0], uintptr(0) // an absolute path ignores the descriptor
	if c.Executable != nil {
		program = s.keep(c.Executable.Fd())
		path, named = "", fmt.Sprintf("/proc/self/fd/%d", program)
	}
	// On some kernels, registering restartable sequences can fail for a new thread, and glibc then ends the process.
	args, environment := s.texts(command), s.texts(append([]string{"GLIBC_TUNABLES=glibc.pthread.rseq=0"}, c.Environment...))
	s.add("run "+command[0], unix.SYS_EXECVEAT, program, s.text(path), args, environment, unix.AT_EMPTY_PATH).replaceable = true
	s.add("run "+command[0], unix.SYS_EXECVE, s.text(named), args, environment)
}

// prepare writes the script except for its last steps, the filter and the program.
func (s *Sandbox) prepare(script *script, c Command, files []string) error {
	if err := s.isolate(script, files, len(c.Launcher) > 0); err != nil {
		return err
	}
	script.layer = ""
	if c.Dir != "" {
		script.add("go to "+c.Dir, unix.SYS_CHDIR, script.text(c.Dir))
	}
	script.add("lead a group of processes", unix.SYS_SETPGID, 0, 0)
	if len(c.Launcher) > 0 {
		script.anyPriority()
	}
	script.descriptors(c.Descriptors) // some may exceed the limits
	script.limits(c.Limits, s.has[User])
	s.dropPrivileges(script)
	if s.has[Files] && !s.pivots {
		if c.Executable != nil {
			files = append(files, fmt.Sprintf("/proc/self/fd/%d", c.Executable.Fd()))
		}
		return script.landlock(s.landlock, s.added, files)
	}
	return nil
}

// resolve returns the complete command and all files that it needs.
func (c Command) resolve() (command, files []string, err error) {
	files = slices.Clone(c.Files)
	if c.Executable == nil {
		files = append(files, c.Program)
	}
	for k, word := range c.Launcher {
		if k == 0 {
			if word, err = exec.LookPath(word); err == nil {
				word, err = filepath.Abs(word)
			}
			if err != nil {
				return nil, nil, fmt.Errorf("sandbox: the launcher: %w", err)
			}
		}
		command = append(command, word)
		if _, err := os.Stat(word); err == nil && filepath.IsAbs(word) {
			files = append(files, word)
		}
	}
	for _, path := range files {
		if !filepath.IsAbs(path) {
			return nil, nil, fmt.Errorf("sandbox: %s is not an absolute path", path)
		}
	}
	return append(append(command, c.Program), c.Args...), files, nil
}

// descriptors places files at the numbers that the program expects, and closes all others on exec, including
// inherited ones without close-on-exec.
func (s *script) descriptors(files []*os.File) {
	s.layer = ""
	for k, f := range files {
		s.add("place a descriptor", unix.SYS_DUP3, s.keep(f.Fd()), uintptr(k), 0)
	}
	s.add("keep other descriptors", unix.SYS_CLOSE_RANGE, uintptr(len(files)), math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC).optional = true // requires Linux 5.11
}

const (
	// busyWait is the delay between attempts, and busyPatience the time after which they end: a busy machine
	// takes seconds to end killed processes.
	busyWait     = 10 * time.Millisecond
	busyPatience = 30 * time.Second
)

// begin runs the script. Two errors are transient: a newly written file is busy while another process, forked
// at that moment, still has it open; and a user may be at its process limit while another sandbox is, or
// while killed processes are not gone yet.
func (s *Sandbox) begin(script *script, group *group) (*os.Process, error) {
	for began := time.Now(); ; {
		p, err := script.run(s.cloneFlags(), group.descriptor())
		passes := errors.Is(err, syscall.ETXTBSY) || errors.Is(err, syscall.EAGAIN)
		if !passes || time.Since(began) > busyPatience {
			return p, err
		}
		time.Sleep(busyWait)
	}
}

// KillGroup kills the process and its descendants in the same process group.
func (p *Process) KillGroup() { p.SignalGroup(syscall.SIGKILL) }

// SignalGroup signals the process and its descendants.
func (p *Process) SignalGroup(s syscall.Signal) {
	_ = syscall.Kill(-p.Pid, s) // an error means that nothing is left
}

// Finish waits for the process to exit, kills its descendants, and returns its state. exhausted reports
// whether the control group ran out of memory.
func (p *Process) Finish() (state *os.ProcessState, exhausted bool, err error) {
	for errors.Is(unix.Waitid(unix.P_PID, p.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	p.KillGroup() // before its pid can be reused
	state, err = p.Wait()
	exhausted = p.group.exhausted()
	return state, exhausted, errors.Join(err, p.group.close())
}

// End kills the process and its descendants, waits for it, and returns the same as Finish.
func (p *Process) End() (state *os.ProcessState, exhausted bool, err error) {
	p.KillGroup()
	return p.Finish()
}
