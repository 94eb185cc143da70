package toolchain

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/internal/sandbox"
)

func library(t *testing.T) *os.File {
	t.Helper()
	source, object := filepath.Join(t.TempDir(), "serve.c"), filepath.Join(t.TempDir(), "serve.so")
	if err := os.WriteFile(source, []byte(ForkServerSource), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command("cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", source, "-o", object, "-ldl").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	f, err := os.Open(object)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func start(t *testing.T, program string, environment ...string) *ForkServer {
	t.Helper()
	s, err := StartForkServer(nil, program, library(t), environment)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

var generous = sandbox.Limits{MemoryBytes: 1 << 30, ProcessorTime: time.Minute}

// run returns what a run said.
func run(t *testing.T, s *ForkServer, dir string, l sandbox.Limits, arguments ...string) (string, ForkExit) {
	t.Helper()
	folder, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	if err := s.Request(folder, arguments, write, l); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	said, err := io.ReadAll(read)
	if err != nil {
		t.Fatal(err)
	}
	exit, err := s.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return string(said), exit
}

func TestForkServerRunsAreIndependent(t *testing.T) {
	s := start(t, "/bin/sh", "KIND=forked")
	dir := t.TempDir()
	for range 3 {
		said, exit := run(t, s, dir, generous, "sh", "-c", "pwd; echo $KIND $LD_PRELOAD $X; X=1; echo error >&2; cat; exit 3")
		if want := dir + "\nforked\nerror\n"; said != want {
			t.Errorf("said %q, want %q", said, want)
		}
		if exit.Status.ExitStatus() != 3 {
			t.Errorf("ended with %v", exit.Status)
		}
	}
}

func TestLimitsAreEachRunsOwn(t *testing.T) {
	s := start(t, "/bin/sh")
	short := sandbox.Limits{MemoryBytes: 1 << 30, ProcessorTime: time.Second}
	_, exit := run(t, s, "/", short, "sh", "-c", "while :; do :; done")
	if exit.Status.Signal() != syscall.SIGKILL || exit.Used < short.ProcessorTime/2 {
		t.Errorf("ended with %v after %v of processor time", exit.Status, exit.Used)
	}
	said, _ := run(t, s, "/", generous, "sh", "-c", "ulimit -t; ulimit -v")
	if want := "60\n1048576\n"; said != want {
		t.Errorf("limits %q, want %q", said, want)
	}
}

func TestKillingAForkServerKillsItsRun(t *testing.T) {
	for name, kill := range map[string]func(s *ForkServer){
		"with its group": (*ForkServer).Kill,
		"alone":          func(s *ForkServer) { _ = s.process.Kill() }, // as when this process ends
	} {
		t.Run(name, func(t *testing.T) { takeAlong(t, kill) })
	}
}

func takeAlong(t *testing.T, kill func(s *ForkServer)) {
	s := start(t, "/bin/sh")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	root, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := s.Request(root, []string{"sh", "-c", "echo here; exec sleep 1000"}, write, generous); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	if _, err := read.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	kill(s)
	if _, err := io.ReadAll(read); err != nil { // ends when the other end is closed
		t.Error(err)
	}
	if _, err := s.Wait(); err == nil {
		t.Error("a killed run has an exit")
	}
}

func TestProgramsThatCannotServe(t *testing.T) {
	static := filepath.Join(t.TempDir(), "static")
	source := filepath.Join(t.TempDir(), "static.c")
	if err := os.WriteFile(source, []byte("int main(void) { return 0; }"), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command("cc", "-static", source, "-o", static).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	for program, want := range map[string]string{static: "not started", "/nowhere/clang": "no such file"} {
		_, err := StartForkServer(nil, program, library(t), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", program, err)
		}
	}
}
