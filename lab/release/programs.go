package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// architectures lists the supported architectures.
var architectures = []string{"amd64", "arm64", "riscv64"}

// riscvLoader is the dynamic linker of glibc on 64-bit RISC-V. Go's linker defaults to a path that no distribution
// has.
const riscvLoader = "/lib/ld-linux-riscv64-lp64d.so.1"

func parseArchitectures(text string) ([]string, error) {
	names := strings.Split(text, ",")
	for _, name := range names {
		if !slices.Contains(architectures, name) {
			return nil, fmt.Errorf("no releases are made for architecture %q: want some of %s", name, strings.Join(architectures, ", "))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// program is a build of tilth. A static one has no dependencies, but cannot run packages on CPUs. A dynamic one needs
// glibc.
type program struct {
	arch   string
	static bool
	path   string
	// data holds the executable, and modules lists the modules in it. load sets them.
	data    []byte
	modules []module
}

// name returns the base name of the program's archive, without its extension.
func (p program) name(version string) string {
	name := "tilth-" + version + "-linux-" + p.arch
	if p.static {
		name += "-static"
	}
	return name
}

// build compiles a program into a folder. The result does not depend on the machine, the folder or the user's
// settings.
func (s *source) build(ctx context.Context, p program, into string) (program, error) {
	out, err := filepath.Abs(filepath.Join(into, p.name(s.version)))
	if err != nil {
		return p, err
	}
	p.path = out
	link := "-s -w -X main.version=" + s.version + " -X main.commit=" + s.commit
	args := []string{"build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-o", out}
	switch {
	case p.static:
		args = append(args, "-tags", "static")
	case p.arch == "riscv64":
		link += " -I " + riscvLoader
	}
	proxy, err := goEnv(ctx, "GOPROXY")
	if err != nil {
		return p, err
	}
	c := exec.CommandContext(ctx, "go", append(args, "-ldflags", link, "./cmd/tilth")...)
	c.Dir = s.root
	c.Env = append(os.Environ(),
		"GOENV=off", "GOPROXY="+proxy, "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+p.arch, "GOAMD64=v1", "GOARM64=v8.0", "GORISCV64=rva20u64",
		"GOFLAGS=", "GOEXPERIMENT=", "GOWORK=off", "GODEBUG=", "GOFIPS140=off")
	if text, err := c.CombinedOutput(); err != nil {
		return p, fmt.Errorf("build for %s: %w: %s", p.arch, err, strings.TrimSpace(string(text)))
	}
	return p, nil
}

// load reads the executable and lists its modules.
func (p *program) load(ctx context.Context, root string) (err error) {
	if p.data, err = os.ReadFile(p.path); err != nil {
		return err
	}
	p.modules, err = programModules(ctx, p.path, root)
	return err
}
