package main

import (
	"cmp"
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cuda"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/lab/testkit/accesstest"
	"github.com/tilth-dev/tilth/lab/testkit/fakedriver"
	"github.com/tilth-dev/tilth/lab/testkit/pgserver"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
)

// TestMain lets this binary act as the program, in scripts and in the processes of a farm.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"tilth": main, "fake-clang": func() { os.Exit(fakedriver.Compiler()) }})
}

// TestScripts runs the command line like a user. Every script has its own folders, except for the caches that all
// tests share, and the host's lock.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(e *testscript.Env) error {
			e.Values[issuerKey{}] = new(*accesstest.Issuer)
			e.Setenv("XDG_DATA_HOME", filepath.Join(e.WorkDir, "data"))
			e.Setenv("XDG_CACHE_HOME", filepath.Join(e.WorkDir, "cache"))
			e.Setenv("ONNX_CASES", "/usr/share/libonnx-testdata/data/node")
			earlier, err := filepath.Abs(filepath.Join("testdata", "earlier"))
			e.Setenv("EARLIER", earlier)
			examples, missing := filepath.Abs(filepath.Join("..", "..", "examples"))
			e.Setenv("EXAMPLES", examples)
			return errors.Join(err, missing, toolchaintest.ShareCaches(filepath.Join(e.WorkDir, "cache", "tilth")))
		},
		// A condition is a processor feature such as avx2, or "mounts": the machine is x86-64, has two processors and
		// permits mount namespaces.
		Condition: func(feature string) (bool, error) {
			if feature == "mounts" {
				private := exec.CommandContext(t.Context(), "unshare", "-m", "mount", "-t", "tmpfs", "none", "/sys/devices")
				return runtime.GOARCH == "amd64" && target.Processors() > 1 && private.Run() == nil, nil
			}
			machine, err := target.Native(0)
			return err == nil && slices.Contains(machine.CPU.Features, feature), err
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits, "onnx": writeONNX, "truncate": truncate, "rename": rename, "serving": serving,
			"appears": appears, "fakecard": fakeCard, "database": database, "https": serveFiles,
			"issuer": startIssuer, "issued": issue, "eventually": eventually, "terminal": onTerminal, "promised": promised,
		},
	})
}

// database starts a PostgreSQL server for the script and sets a variable to the address of an empty database:
// database NAME.
func database(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: database NAME")
	}
	server, err := pgserver.New()
	ts.Check(err)
	ts.Defer(func() { ts.Check(server.Stop()) })
	address, err := server.Database()
	ts.Check(err)
	ts.Setenv(args[0], address)
}

// serveFiles serves a folder over TLS. It sets a variable to the address and writes the CA certificate to a file:
// https FOLDER NAME FILE.
func serveFiles(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: https FOLDER NAME FILE")
	}
	server := httptest.NewUnstartedServer(http.FileServer(http.Dir(ts.MkAbs(args[0]))))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	ts.Defer(server.Close)
	ts.Setenv(args[1], server.URL)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), authority, 0o600))
}

// issuerKey is the context key of a script's token issuer.
type issuerKey struct{}

// startIssuer starts a token issuer. It sets a variable to its address and writes the CA certificate to a file:
// issuer NAME FILE.
func startIssuer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: issuer NAME FILE")
	}
	issuer, err := accesstest.NewIssuer(ts.MkAbs(args[1]))
	ts.Check(err)
	ts.Defer(issuer.Close)
	*ts.Value(issuerKey{}).(**accesstest.Issuer) = issuer
	ts.Setenv(args[0], issuer.URL())
}

// issue writes a token of the issuer for a member of a group: issued NAME GROUP FILE.
func issue(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: issued NAME GROUP FILE")
	}
	issuer := *ts.Value(issuerKey{}).(**accesstest.Issuer)
	token, err := issuer.Sign(issuer.Claims(args[0], args[1]), nil)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(token), 0o600))
}

// fakeCard simulates GPUs with a fake driver and the compiler for its kernels: fakecard [COUNT].
func fakeCard(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 1 {
		ts.Fatalf("usage: fakecard [COUNT]")
	}
	tc, err := toolchain.Find(context.Background(), os.Getenv(toolchain.Variable))
	ts.Check(err)
	on, err := target.Native(1)
	ts.Check(err)
	dir := ts.MkAbs("driver")
	ts.Check(os.Mkdir(dir, 0o700))
	driver, err := fakedriver.Make(context.Background(), tc, on, dir)
	ts.Check(err)
	for _, count := range args {
		n, err := strconv.Atoi(count)
		ts.Check(err)
		ts.Check(driver.Tell("devices", n))
	}
	health, err := driver.MakeHealth(context.Background())
	ts.Check(err)
	ts.Setenv(cuda.HealthVariable, health)
	ts.Setenv(cuda.DriverVariable, driver.Library())
	clang, err := exec.LookPath(cmp.Or(os.Getenv(toolchain.Variable), "clang-19"))
	ts.Check(err)
	fake, err := exec.LookPath("fake-clang")
	ts.Check(err)
	wrapper := filepath.Join(dir, "clang")
	ts.Check(driver.WriteCompiler(wrapper, clang, fake))
	ts.Setenv(toolchain.Variable, wrapper)
	ts.Setenv("XDG_CACHE_HOME", ts.MkAbs("caches")) // output of the fake compiler depends on the code under test
}

// exits runs a command and checks its exit status: exits 2 tilth --bogus.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND [ARGS]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// serving waits until something listens on a unix socket: serving PATH.
func serving(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: serving PATH")
	}
	// It takes a moment; the deadline detects hangs.
	for deadline := time.Now().Add(10 * time.Minute); ; {
		conn, err := net.Dial("unix", ts.MkAbs(args[0]))
		if err == nil {
			ts.Check(conn.Close())
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("nobody listens on %s: %v", args[0], err)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// appears waits until a file matches a pattern: appears PATTERN.
func appears(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: appears PATTERN")
	}
	for deadline := time.Now().Add(10 * time.Minute); ; {
		files, err := filepath.Glob(ts.MkAbs(args[0]))
		ts.Check(err)
		if len(files) > 0 {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("there is no %s", args[0])
		}
		<-time.After(10 * time.Millisecond)
	}
}

// eventually retries a command until it succeeds, for ten minutes: eventually PROGRAM ARGS.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: eventually PROGRAM ARGS")
	}
	for end := time.Now().Add(10 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		err := ts.Exec(args[0], args[1:]...)
		if err == nil {
			return
		}
		if time.Now().After(end) {
			ts.Check(err)
		}
	}
}

// truncate truncates a file to a number of bytes: truncate 100 FILE.
func truncate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: truncate BYTES FILE")
	}
	n, err := strconv.ParseInt(args[0], 10, 64)
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[1]), n))
}

// rename replaces a word in a file: rename FILE WORD OTHER.
func rename(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: rename FILE WORD OTHER")
	}
	text := strings.ReplaceAll(ts.ReadFile(args[0]), args[1], args[2])
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o644))
}

// writeONNX writes a model that cannot be imported: onnx KIND FILE.
func writeONNX(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 || badModels[args[0]] == nil {
		ts.Fatalf("usage: onnx unsupported|dynamic|cyclic FILE")
	}
	m := &onnx.Model{IRVersion: 8, Opsets: []onnx.Opset{{Version: 13}}, Graph: badModels[args[0]]}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), m.Encode(), 0o644))
}

var badModels = map[string]*onnx.Graph{
	"unsupported": {
		Name:    "g",
		Nodes:   []*onnx.Node{{Name: "n", Op: "Frobnicate", Inputs: []string{"x"}, Outputs: []string{"y"}}},
		Inputs:  []*onnx.ValueInfo{value("x", onnx.Dim{Value: 4})},
		Outputs: []*onnx.ValueInfo{value("y", onnx.Dim{Value: 4})},
	},
	"dynamic": {
		Name:    "g",
		Nodes:   []*onnx.Node{{Name: "n", Op: "Relu", Inputs: []string{"x"}, Outputs: []string{"y"}}},
		Inputs:  []*onnx.ValueInfo{value("x", onnx.Dim{Value: -1, Param: "N"}, onnx.Dim{Value: 4})},
		Outputs: []*onnx.ValueInfo{value("y", onnx.Dim{Value: -1, Param: "N"}, onnx.Dim{Value: 4})},
	},
	"cyclic": {
		Name: "g",
		Nodes: []*onnx.Node{
			{Name: "a", Op: "Add", Inputs: []string{"x", "v"}, Outputs: []string{"u"}},
			{Name: "b", Op: "Relu", Inputs: []string{"u"}, Outputs: []string{"v"}},
		},
		Inputs:  []*onnx.ValueInfo{value("x", onnx.Dim{Value: 4})},
		Outputs: []*onnx.ValueInfo{value("v", onnx.Dim{Value: 4})},
	},
}

func value(name string, dims ...onnx.Dim) *onnx.ValueInfo {
	return &onnx.ValueInfo{Name: name, DType: array.Float32, HasShape: true, Shape: dims}
}
