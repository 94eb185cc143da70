package sandbox

import (
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
	// Launcher, when set, is a command that runs the program: an emulator, or something that sets its priority. It may
	// have more calls than the program itself.
	Launcher []string
	// Program and the files that it reads are seen inside by the names given, which must be absolute.
	Program string
	Args    []string
	Files   []string
	// Executable, when set, is run in the place of a file of the name Program, and not seen inside.
	Executable *os.File
	// Events lets the program wait for events (epoll), as those in Go do.
	Events bool
	// Environment is empty by default, Dir the root.
	Environment []string
	Dir         string
	// Descriptors are 0, 1, 2 and so on inside. There are no others.
	Descriptors []*os.File
	Limits      Limits
}

// Process is a program that was started.
type Process struct {
	*os.Process
	group *group
}

// Start begins a program. When it ends, all that it started does where there is a layer for that. It is killed
// when this process ends.
func (s *Sandbox) Start(c Command) (*Process, error) {
	if s == nil {
		s = &Sandbox{}
	}
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

// execute is a script's last step. QEMU's emulation of processes knows no execveat before version 9. What begins there
// is the same file, by its name or by that of its descriptor; a filter of calls lets execveat alone through.
func (s *script) execute(command []string, c Command) {
	path, named, program := command[0], command[0], uintptr(0) // a descriptor is of no account to an absolute path
	if c.Executable != nil {
		program = s.keep(c.Executable.Fd())
		path, named = "", fmt.Sprintf("/proc/self/fd/%d", program)
	}
	args, environment := s.texts(command), s.texts(c.Environment)
	s.add("run "+command[0], unix.SYS_EXECVEAT, program, s.text(path), args, environment, unix.AT_EMPTY_PATH).replaceable = true
	s.add("run "+command[0], unix.SYS_EXECVE, s.text(named), args, environment)
}

// prepare writes all of a script but its last steps, the filter and the program.
func (s *Sandbox) prepare(script *script, c Command, files []string) error {
	if err := s.hide(script, files, len(c.Launcher) > 0); err != nil {
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
	script.descriptors(c.Descriptors) // some of which may be beyond the limits
	script.limits(c.Limits, s.has[User])
	s.yield(script)
	if s.has[Files] && !s.pivots {
		if c.Executable != nil {
			files = append(files, fmt.Sprintf("/proc/self/fd/%d", c.Executable.Fd()))
		}
		return script.landlock(s.landlock, s.added, files)
	}
	return nil
}

// resolve returns the whole command, and all files that it needs.
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

// descriptors puts files where the program expects them, and has all others closed when it begins: this process may
// have been given some that are not marked for that.
func (s *script) descriptors(files []*os.File) {
	s.layer = ""
	for k, f := range files {
		s.add("place a descriptor", unix.SYS_DUP3, s.keep(f.Fd()), uintptr(k), 0)
	}
	s.add("keep other descriptors", unix.SYS_CLOSE_RANGE, uintptr(len(files)), math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC).optional = true // Linux 5.11
}

const (
	// busyWait is how long to wait between attempts, and busyPatience for how long there are some: a busy machine
	// takes seconds to end what is killed.
	busyWait     = 10 * time.Millisecond
	busyPatience = 30 * time.Second
)

// begin runs the script. A file that was just written is busy as long as some other process, forked at that moment and
// about to execute something else, still has it open; and a user has as many processes as may be while a sandbox
// beside this one is at its limit, or what was killed there is not gone yet. Both pass.
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

// KillGroup kills the process and what it started, as far as that did not leave its group.
func (p *Process) KillGroup() {
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL) // an error means that nothing is left
}

// Finish waits for the process to end by itself, ends what it left, and returns how it ended. exhausted says that the
// control group's memory was used up.
func (p *Process) Finish() (state *os.ProcessState, exhausted bool, err error) {
	for errors.Is(unix.Waitid(unix.P_PID, p.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	p.KillGroup() // while nobody else can have its number
	state, err = p.Wait()
	exhausted = p.group.exhausted()
	return state, exhausted, errors.Join(err, p.group.close())
}

// End kills the process with all that it started, waits for it, and returns how it ended, as Finish does.
func (p *Process) End() (state *os.ProcessState, exhausted bool, err error) {
	p.KillGroup()
	return p.Finish()
}
