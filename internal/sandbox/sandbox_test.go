package sandbox

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func open(t testing.TB) *Sandbox {
	t.Helper()
	s, err := Open(BestEffort, reachable(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, state := range s.States() {
		t.Logf("%s: %s%s%s", state.Layer, state.How, state.Missing, state.Except)
	}
	return s
}

// reachable returns a folder that another user can access.
func reachable(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// need skips a test if a layer is unavailable.
func need(t *testing.T, s *Sandbox, layer Layer) {
	t.Helper()
	for _, state := range s.States() {
		if state.Layer == layer && state.How == "" {
			t.Skipf("this kernel has no layer %s: %s", layer, state.Missing)
		}
	}
}

// only returns a sandbox of one layer. It does not change the user, which could have the same effect as the layer
// under test. Dropping privileges has no effect on processes without them.
func only(s *Sandbox, layer Layer) *Sandbox {
	switch layer {
	case User, Privileges:
		return s.Only(User, layer)
	case Files, Calls: // the kernel requires no_new_privs
		return s.Only(layer, Privileges)
	default:
		return s.Only(layer)
	}
}

// hostile compiles testdata/hostile.c.
func hostile(t testing.TB) string {
	t.Helper()
	return program(t, "hostile")
}

// program compiles a program in testdata.
func program(t testing.TB, name string) string {
	t.Helper()
	program := filepath.Join(reachable(t), name)
	if text, err := exec.CommandContext(t.Context(), compiler(t), "-O1", "-w", "-pthread", "-o", program, "testdata/"+name+".c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return program
}

// compiler returns any compiler, because the package that finds the best one depends on this package.
func compiler(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"cc", "gcc", "clang", "clang-19"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("no C compiler is installed: run scripts/packages.sh test")
	return ""
}

// output runs a program and returns its output and final state.
func output(t testing.TB, s *Sandbox, c Command) (string, *os.ProcessState) {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	c.Descriptors = append([]*os.File{null, write, null}, c.Descriptors...)
	p, err := s.Start(c)
	write.Close()
	if err != nil {
		t.Fatal(err)
	}
	if err := read.SetReadDeadline(time.Now().Add(10 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(io.LimitReader(read, 1<<20))
	if err != nil {
		t.Error(err)
	}
	state, _, err := p.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return string(text), state
}

// victims holds the targets of a hostile program.
type victims struct{ args []string }

func newVictims(t *testing.T, program string) victims {
	t.Helper()
	sleeper := exec.Command("sleep", "600")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = sleeper.Process.Kill(), sleeper.Wait() })
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tcp.Close() })
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { udp.Close() })
	name := fmt.Sprintf("tilth-test-%d", os.Getpid())
	abstract, err := net.Listen("unix", "@"+name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { abstract.Close() })
	key := os.Getpid()
	shm, err := unix.SysvShmGet(key, 4096, unix.IPC_CREAT|0o666)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.SysvShmCtl(shm, unix.IPC_RMID, nil) })
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	setUserID(t, program, filepath.Join(dir, "set-user-id"))
	port := func(a net.Addr) string {
		_, port, _ := net.SplitHostPort(a.String())
		return port
	}
	return victims{[]string{strconv.Itoa(sleeper.Process.Pid), port(tcp.Addr()), port(udp.LocalAddr()), name, strconv.Itoa(key), host, dir}}
}

// setUserID copies a program and sets its set-user-ID bit.
func setUserID(t *testing.T, program, copied string) {
	t.Helper()
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(copied, text, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(copied, 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
}

func (v victims) command(program, layer string) Command {
	return Command{Program: program, Args: append([]string{layer}, v.args...)}
}

// TestHostileProgramsReachTheirVictimsWithoutASandbox validates the tests below, which would otherwise prove nothing.
func TestHostileProgramsReachTheirVictimsWithoutASandbox(t *testing.T) {
	program := hostile(t)
	v, did := newVictims(t, program), ""
	for _, layer := range []Layer{Files, Processes, Network, IPC, Hostname, Calls} {
		more, _ := output(t, nil, v.command(program, string(layer)))
		did += more
	}
	for _, way := range []string{"reads_shadow", "reads_keys", "reads_others_environment", "sees_others", "signals_others", "calls_by_tcp", "calls_by_udp",
		"calls_by_abstract_socket", "finds_shared_memory", "tells_the_host", "forks", "makes_sockets"} {
		if !slices.Contains(strings.Fields(did), way) {
			t.Errorf("without a sandbox, %s fails", way)
		}
	}
}

// check runs a hostile program whose attempts must all fail.
func check(t *testing.T, s *Sandbox, c Command) {
	t.Helper()
	if did, state := output(t, s, c); did != "" || !state.Success() {
		t.Errorf("did %q, %v", strings.Fields(did), state)
	}
}

func TestEachLayerIsSufficient(t *testing.T) {
	s, program := open(t), hostile(t)
	v := newVictims(t, program)
	for _, layer := range []Layer{User, Files, Processes, Network, IPC, Hostname, Privileges, Calls} {
		t.Run(string(layer), func(t *testing.T) {
			need(t, only(s, layer), layer)
			check(t, only(s, layer), v.command(program, string(layer)))
			if layer == Files {
				check(t, only(s, layer), v.command(program, "writing"))
			}
		})
	}
}

func TestLandlockAloneProtectsFiles(t *testing.T) {
	s, program := open(t), hostile(t)
	locked, v := landlocked(t, s), newVictims(t, program)
	check(t, locked, v.command(program, "files"))
	check(t, locked, v.command(program, "writing"))
}

func TestAllLayersHoldTogether(t *testing.T) {
	s, program := open(t), hostile(t)
	if missing := s.Missing(); len(missing) > 0 {
		t.Skipf("this kernel lacks layers: %s", strings.Join(missing, "; "))
	}
	check(t, s, newVictims(t, program).command(program, "all"))
}

func TestResourcesAreLimited(t *testing.T) {
	s, program := open(t), hostile(t)
	limits := Limits{MemoryBytes: 256 << 20, Processes: 20, OpenFiles: 64, FileBytes: 1 << 20}
	file, err := os.Create(filepath.Join(t.TempDir(), "written"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for what, limit := range map[string]int{"memory": 256, "threads": 20, "descriptors": 64, "file": 1024} {
		t.Run(what, func(t *testing.T) {
			if what == "threads" {
				need(t, s, User)
			}
			did, state := output(t, s, Command{Program: program, Args: []string{"use-up", what}, Limits: limits, Descriptors: []*os.File{file}})
			if status, ok := state.Sys().(syscall.WaitStatus); what == "memory" && ok && status.Signal() == syscall.SIGKILL {
				return // killed by its control group without output
			}
			var got int
			if _, err := fmt.Sscan(did, &got); err != nil || got > limit {
				t.Errorf("used up %q, %v; want at most %d", did, err, limit)
			}
		})
	}
	t.Run("processor", func(t *testing.T) {
		_, state := output(t, s, Command{Program: program, Args: []string{"use-up", "processor"}, Limits: Limits{ProcessorTime: time.Second}})
		if status := state.Sys().(syscall.WaitStatus); !status.Signaled() || state.UserTime() > 3*time.Second {
			t.Errorf("an endless loop ends by %v after %v", state, state.UserTime())
		}
	})
	t.Run("core", func(t *testing.T) {
		_, state := output(t, s, Command{Program: program, Args: []string{"use-up", "core"}, Limits: limits})
		if status := state.Sys().(syscall.WaitStatus); status.CoreDump() || state.Success() {
			t.Errorf("a crash ends by %v", state)
		}
	})
}

// TestLowerLimitsOfTheMachineStay checks that programs run if a shell or container sets lower hard limits than the
// sandbox.
func TestLowerLimitsOfTheMachineStay(t *testing.T) {
	cmd := exec.Command("prlimit", "--core=0:0", os.Args[0], "-test.v", "-test.run=^TestResourcesAreLimited$/^core$")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestResourcesAreLimited/core") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestSandboxWaitsForOneThatIsAtItsLimit uses sandboxes of one user, whose processes the kernel counts together.
func TestSandboxWaitsForOneThatIsAtItsLimit(t *testing.T) {
	s, program := open(t), hostile(t)
	need(t, s, User)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	// The others block on a full pipe before they report their threads, and so keep them.
	size, err := unix.FcntlInt(write.Fd(), unix.F_GETPIPE_SZ, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := write.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	limits := Limits{Processes: 20}
	hold := func(limit int) *Process {
		p, err := s.Start(Command{Program: program, Args: []string{"use-up", "threads"}, Limits: limits, Descriptors: []*os.File{write, write, write}})
		if err != nil {
			t.Fatal(err)
		}
		for threads, before := 0, -1; threads != before || threads < limit; time.Sleep(20 * time.Millisecond) {
			list, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.Pid))
			if err != nil {
				t.Fatal(err)
			}
			threads, before = len(list), threads
		}
		return p
	}
	others := []*Process{hold(2), hold(1)} // the kernel admits one more than the limit
	write.Close()
	room := time.AfterFunc(100*time.Millisecond, func() { _, _ = io.Copy(io.Discard, read) })
	defer room.Stop()
	output(t, s, Command{Program: program, Args: []string{"use-up", "descriptors"}, Limits: limits})
	for _, p := range others {
		if _, _, err := p.Finish(); err != nil {
			t.Error(err)
		}
	}
}

func TestNoLayerIsOpenedWhenOff(t *testing.T) {
	s, err := Open(Off, filepath.Join(t.TempDir(), "none"))
	if err != nil || len(s.States()) != 0 || s.Close() != nil {
		t.Errorf("off: %v, %v", s.States(), err)
	}
}

func TestRequiredNamesEachLayerThatIsMissing(t *testing.T) {
	s := open(t)
	again, err := Open(Required, t.TempDir())
	if missing := s.Missing(); len(missing) == 0 {
		if err != nil || again.Close() != nil {
			t.Errorf("nothing is missing: %v", err)
		}
	} else {
		for _, m := range missing {
			if err == nil || !strings.Contains(err.Error(), m) {
				t.Errorf("got %v, want %q", err, m)
			}
		}
	}
}

func TestStartFailuresNameTheCause(t *testing.T) {
	s := open(t)
	for name, c := range map[string]struct {
		command Command
		want    string
	}{
		"no program":    {Command{Program: "/nowhere/program"}, "/nowhere/program"},
		"no file":       {Command{Program: "/bin/true", Files: []string{"/nowhere/file"}}, "/nowhere/file"},
		"relative":      {Command{Program: "true"}, "true is not an absolute path"},
		"no launcher":   {Command{Launcher: []string{"nowhere"}, Program: "/bin/true"}, "launcher"},
		"a NUL":         {Command{Program: "/bin/true", Args: []string{"a\x00b"}}, "has a NUL"},
		"not a program": {Command{Program: "/etc/hostname"}, "run /etc/hostname"},
	} {
		t.Run(name, func(t *testing.T) {
			if p, err := s.Start(c.command); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v; want %q", p, err, c.want)
			}
		})
	}
}

func TestLaunchersAreSeenInside(t *testing.T) {
	s := open(t)
	nice, err := exec.LookPath("nice")
	if err != nil {
		t.Fatal(err)
	}
	for _, launcher := range [][]string{{"nice"}, {nice, "-n", "5"}} {
		text, state := output(t, s, Command{Launcher: launcher, Program: "/bin/echo", Args: []string{"hello"}})
		if text != "hello\n" || !state.Success() {
			t.Errorf("%v: %q, %v", launcher, text, state)
		}
	}
}

// TestLinksAreSeenAsWhatTheyLeadTo because programs are often links, such as Debian's alternatives.
func TestLinksAreSeenAsWhatTheyLeadTo(t *testing.T) {
	s, dir := open(t), reachable(t)
	link := filepath.Join(dir, "print")
	if err := os.Symlink("/bin/echo", link); err != nil {
		t.Fatal(err)
	}
	if text, state := output(t, s, Command{Program: link, Args: []string{"hello"}}); text != "hello\n" || !state.Success() {
		t.Errorf("%q, %v", text, state)
	}
}

// TestLibrariesOfThisMachineAreSeen covers the additional folders in the loader's configuration, which may be links.
func TestLibrariesOfThisMachineAreSeen(t *testing.T) {
	s, dir := open(t), reachable(t)
	own, nested, link := filepath.Join(dir, "cuda"), filepath.Join(dir, "cuda", "lib"), filepath.Join(dir, "lib64")
	if err := os.MkdirAll(nested, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("cuda/lib", link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(nested, "libx.so.1"), []byte("a library\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.added = addedLibraries([]string{nested, own, "/", "/usr", "/usr/lib/here", filepath.Join(dir, "missing"), link})
	if want := []string{own, link}; !slices.Equal(s.added, want) {
		t.Errorf("%q are added to the libraries, not %q", s.added, want)
	}
	for name, box := range map[string]*Sandbox{"a root": s, "Landlock": landlocked(t, s)} {
		for _, path := range []string{nested, link} {
			text, state := output(t, box, Command{Program: "/bin/cat", Args: []string{filepath.Join(path, "libx.so.1")}})
			if text != "a library\n" || !state.Success() {
				t.Errorf("%s, %s: %q, %v", name, path, text, state)
			}
		}
	}
}

// landlocked returns a sandbox that hides files with Landlock.
func landlocked(t *testing.T, s *Sandbox) *Sandbox {
	t.Helper()
	version, err := landlockVersion()
	if err != nil {
		t.Skipf("this kernel has no Landlock, which stands in for layer %s: %v", Files, err)
	}
	locked := s.Only(Files, Privileges)
	locked.pivots, locked.landlock, locked.has[Files], locked.has[Privileges] = false, version, true, true
	return locked
}

// TestExecutableNeedNotBeSeen covers deleted executables, because a service restarts itself after its file was
// replaced.
func TestExecutableNeedNotBeSeen(t *testing.T) {
	s := open(t)
	text, err := os.ReadFile("/bin/echo")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "echo")
	if err := os.WriteFile(path, text, 0o755); err != nil {
		t.Fatal(err)
	}
	program, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for name, box := range map[string]*Sandbox{"off": nil, "sandbox": s, "Landlock": landlocked(t, s)} {
		if did, state := output(t, box, Command{Executable: program, Program: "echo", Args: []string{"hello"}}); did != "hello\n" || !state.Success() {
			t.Errorf("%s: %q, %v", name, did, state)
		}
	}
	if err := program.Chmod(0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Start(Command{Executable: program, Program: "echo"}); s.id != 0 && (err == nil || !strings.Contains(err.Error(), path)) {
		t.Errorf("got %v", err)
	}
}

// TestProgramHasItsDescriptorsAndNoOthers regardless of their numbers in this process, which also has inheritable
// descriptors.
func TestProgramHasItsDescriptorsAndNoOthers(t *testing.T) {
	s, program := open(t), hostile(t)
	v := newVictims(t, program)
	var files []*os.File
	want := ""
	for k := range 7 {
		f, err := os.Create(filepath.Join(t.TempDir(), "file"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		line := fmt.Sprintf("file %d\n", k)
		if _, err := f.WriteAt([]byte(line), 0); err != nil {
			t.Fatal(err)
		}
		files, want = append(files, f), line+want
	}
	slices.Reverse(files) // so that each would overwrite another
	inherited, err := unix.Dup(int(files[0].Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(inherited)
	for name, box := range map[string]*Sandbox{"off": nil, "sandbox": s} {
		script := "for k in 3 4 5 6 7 8 9; do read line <&$k; echo $line; done"
		if got, state := output(t, box, Command{Program: "/bin/sh", Args: []string{"-c", script}, Descriptors: files}); got != want || !state.Success() {
			t.Errorf("%s: %q, %v", name, got, state)
		}
		for _, f := range files {
			if _, err := f.Seek(0, io.SeekStart); err != nil {
				t.Fatal(err)
			}
		}
		check(t, box, v.command(program, "descriptors"))
	}
}

// BenchmarkStart measures the start of a program, in a sandbox and with limits only, in turns. It reports medians in
// milliseconds. LARGE is the size in MiB of this process's memory meanwhile.
func BenchmarkStart(b *testing.B) {
	s, err := Open(BestEffort, reachable(b))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	large, _ := strconv.Atoi(os.Getenv("LARGE"))
	held := bytes.Repeat([]byte{1}, large<<20)
	took := map[string][]float64{}
	for b.Loop() {
		for name, box := range map[string]*Sandbox{"sandbox": s, "off": nil} {
			begin := time.Now()
			if _, state := output(b, box, Command{Program: "/bin/true"}); !state.Success() {
				b.Fatal(state)
			}
			took[name] = append(took[name], time.Since(begin).Seconds()*1e3)
		}
	}
	runtime.KeepAlive(held)
	for name, samples := range took {
		slices.Sort(samples)
		b.ReportMetric(samples[len(samples)/2], name+"-ms")
	}
}

func TestFilesThatAnotherUserCannotReadAreNamed(t *testing.T) {
	s := open(t)
	if s.id == 0 {
		t.Skip("only root may become another user")
	}
	path := filepath.Join(t.TempDir(), "private")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := s.Start(Command{Program: "/bin/true", Files: []string{path}})
	if want := fmt.Sprintf("sandbox: user %d cannot read %s: allow others to (chmod o+r)", s.id, path); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	private := filepath.Join(t.TempDir(), "private folder")
	if err := os.Mkdir(private, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := closed(private); got != private {
		t.Error("a folder of a test's own is open to others")
	}
	if got := closed("/usr/bin"); got != "" {
		t.Errorf("%s is closed to others", got)
	}
}

// BenchmarkOpen measures the detection of all layers.
func BenchmarkOpen(b *testing.B) {
	dir := reachable(b)
	for b.Loop() {
		s, err := Open(BestEffort, dir)
		if err == nil {
			err = s.Close()
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
