package toolchain

import (
	"context"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/tilth-dev/tilth/internal/sandbox"
)

// servers holds compilers in memory, one per concurrent run: loading takes 20 of a small kernel's 48 ms. If servers
// are unavailable, compilers are loaded for each run.
type servers struct {
	path string
	box  *sandbox.Sandbox

	mu sync.Mutex
	// runs counts the requests until the library exists.
	runs    int
	library *os.File
	// making is set while the library is compiled; broken is set if this compiler cannot be a server.
	making, broken bool
	idle           []*ForkServer
}

// newServers returns the servers for clang; gcc is a small driver that starts other programs. If the user already
// preloads a library, it applies to each run.
func (tc *Toolchain) newServers() *servers {
	if tc.family != "clang" || os.Getenv("LD_PRELOAD") != "" {
		return nil
	}
	return &servers{path: tc.path, box: tc.box}
}

// worthServers is the run from which servers pay: compiling the library costs about as much as they save in three
// runs.
const worthServers = 4

// take returns a server to run the compiler with, or nil.
func (p *servers) take() *ForkServer {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	if p.runs++; p.broken || p.making || p.runs < worthServers {
		p.mu.Unlock()
		return nil
	}
	if n := len(p.idle); n > 0 {
		s := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return s
	}
	library := p.library
	p.making = library == nil
	p.mu.Unlock()
	var err error
	if library == nil {
		library, err = p.make()
	}
	var s *ForkServer
	if err == nil {
		s, err = StartForkServer(p.box, p.path, library, environment())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.library, p.making, p.broken = library, false, p.broken || err != nil
	return s
}

// put keeps a server for another run, up to one per processor.
func (p *servers) put(s *ForkServer) {
	p.mu.Lock()
	if keep := len(p.idle) < runtime.GOMAXPROCS(0); keep {
		p.idle = append(p.idle, s)
		s = nil
	}
	p.mu.Unlock()
	if s != nil {
		s.Close()
	}
}

// make compiles the library. It returns the open, already unlinked file.
func (p *servers) make() (*os.File, error) {
	executable, err := elf.Open(p.path)
	if err != nil {
		return nil, err // a script: the server would be its child
	}
	_ = executable.Close()
	ctx, cancel := context.WithTimeout(context.Background(), defaultTime)
	defer cancel()
	return compileTemporary(ctx, p.path, ForkServerSource, "-shared", "-fPIC", "-ldl")
}

// compileTemporary compiles a source for this machine. It returns the open, already unlinked output file.
func compileTemporary(ctx context.Context, cc, source string, flags ...string) (*os.File, error) {
	dir, err := os.MkdirTemp("", "tilth-compiled-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	text, made := filepath.Join(dir, "source.c"), filepath.Join(dir, "made")
	if err := os.WriteFile(text, []byte(source), 0o600); err != nil {
		return nil, err
	}
	args := append([]string{"-std=gnu11", "-O1", text, "-o", made}, flags...)
	if said, err := exec.CommandContext(ctx, cc, args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", cc, err, usefulLine(string(said)))
	}
	return os.Open(made)
}
