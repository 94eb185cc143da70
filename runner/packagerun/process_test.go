package packagerun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/internal/sandbox"
)

// TestMain lets this binary act as the process of packages. The name that it is started with selects its behaviour.
func TestMain(m *testing.M) {
	if role := roles[os.Args[0]]; role != nil {
		role()
		return
	}
	os.Exit(m.Run())
}

// roles lists the behaviours of a package's process.
var roles = map[string]func(){
	"serves": func() {
		if err := Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	},
	"unsealed": func() {
		var o order
		_ = json.NewDecoder(os.Stdin).Decode(&o)
		result, _ := o.run(context.Background())
		_ = json.NewEncoder(os.Stdout).Encode(answer{Result: result})
	},
	"exits": func() { os.Exit(3) },
	"panics": func() {
		var nowhere *int
		*nowhere = 1
	},
	"hangs": func() {
		for {
			time.Sleep(time.Hour)
		}
	},
	"floods": func() {
		for line := []byte(strings.Repeat("x", 1<<20)); ; {
			if _, err := os.Stdout.Write(line); err != nil {
				return
			}
		}
	},
	"lies": func() { fmt.Println(`{"result":{"packages":[{},{},{}]}}`) },
	"spies": func() {
		var did []string
		try := func(what string, err error) {
			if err == nil {
				did = append(did, what)
			}
		}
		_, err := net.Dial("tcp", os.Args[1])
		try("reached the network", err)
		_, err = os.ReadFile("/etc/shadow")
		try("read /etc/shadow", err)
		try("wrote to /", os.WriteFile("/tilth-was-here", nil, 0o600))
		runner, err := strconv.Atoi(os.Args[2])
		try("signalled the runner", errors.Join(err, syscall.Kill(runner, 0)))
		_ = json.NewEncoder(os.Stdout).Encode(answer{Error: "did: " + strings.Join(did, ", ")})
	},
}

// executor returns an executor with processes of a role.
func executor(t testing.TB, mode sandbox.Mode, role ...string) *Executor {
	t.Helper()
	box, err := sandbox.Open(mode, filepath.Join(t.TempDir(), "sandbox"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	})
	return &Executor{Server: sandbox.Server{Args: role, Sandbox: box, Scratch: t.TempDir()}}
}

// run starts a process of a role with a file that is not a package.
func run(t *testing.T, limits Limits, role ...string) (*Result, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "no-package.tar")
	if err := os.WriteFile(file, []byte("nothing"), 0o644); err != nil {
		t.Fatal(err)
	}
	e := executor(t, sandbox.BestEffort, role...)
	return e.Run(t.Context(), Request{Packages: []Package{{Path: file, Name: "model.tar"}}}, limits)
}

func TestPackageProcessFailuresAreReported(t *testing.T) {
	for role, want := range map[string]string{
		"serves": "loading package model.tar",
		"exits":  "crashes: exits with status 3",
		"panics": "crashes: exits with status 2",
		"hangs":  "takes longer than 2s",
		"floods": "crashes: floods its output",
		"lies":   "crashes",
	} {
		t.Run(role, func(t *testing.T) {
			limits := Limits{}
			if role == "hangs" {
				limits.Time = 2 * time.Second
			}
			_, err := run(t, limits, role)
			var failure *Failure
			if !errors.As(err, &failure) || !strings.Contains(failure.Error(), want) || strings.Contains(failure.Error(), "\n") {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

func TestProcessEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("nobody waits")
	time.AfterFunc(100*time.Millisecond, func() { cancel(gone) })
	e := executor(t, sandbox.BestEffort, "hangs")
	if _, err := e.Run(ctx, Request{}, Limits{}); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

// TestPackagesAreSandboxed also covers the Go runtime's actions before the process is sealed.
func TestPackagesAreSandboxed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, err = run(t, Limits{}, "spies", listener.Addr().String(), strconv.Itoa(os.Getpid()))
	if err == nil || err.Error() != "did:" {
		t.Errorf("it %v", err)
	}
}

// BenchmarkTry measures a process that runs no package.
func BenchmarkTry(b *testing.B) {
	e := executor(b, sandbox.BestEffort, "serves")
	for b.Loop() {
		if err := e.Try(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
