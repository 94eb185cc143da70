package soak

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// binary is a compiled test package.
type binary struct{ pkg, dir, path string }

// build compiles the tests of packages once for all runs. It omits packages without tests.
func build(ctx context.Context, scratch string, race bool, packages []string) ([]binary, error) {
	const format = `{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}`
	out, err := command(ctx, "go", append([]string{"list", "-f", format}, packages...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("listing the packages: %w", err)
	}
	var binaries []binary
	for line := range strings.Lines(string(out)) {
		if pkg, dir, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			// `go test` uses the same name.
			name := filepath.Join(fmt.Sprintf("%03d-%t", len(binaries), race), path.Base(pkg)+".test")
			binaries = append(binaries, binary{pkg, dir, filepath.Join(scratch, name)})
		}
	}
	if len(binaries) == 0 {
		return nil, fmt.Errorf("no tests in %s", strings.Join(packages, " "))
	}
	return binaries, compile(ctx, binaries, race)
}

// compile compiles tests, one per processor at a time, because the linker uses a whole processor.
func compile(ctx context.Context, binaries []binary, race bool) error {
	errs := make([]error, len(binaries))
	var wait sync.WaitGroup
	slots := make(chan struct{}, runtime.NumCPU())
	for k, b := range binaries {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			args := []string{"test", "-c", "-o", b.path}
			if race {
				args = append(args, "-race")
			}
			if err := command(ctx, "go", append(args, b.pkg)...).Run(); err != nil {
				errs[k] = fmt.Errorf("compiling the tests of %s: %w", b.pkg, err)
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = os.Stderr
	return cmd
}
