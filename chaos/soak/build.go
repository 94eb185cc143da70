package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// binary is a package's compiled tests.
type binary struct{ pkg, dir, path string }

// build compiles the tests of packages once, for all runs. Packages without tests are left out.
func build(ctx context.Context, scratch string, race bool, packages []string) ([]binary, error) {
	const format = `{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}`
	out, err := command(ctx, "go", append([]string{"list", "-f", format}, packages...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("listing the packages: %w", err)
	}
	var binaries []binary
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		pkg, dir, ok := strings.Cut(line, " ")
		if !ok {
			continue
		}
		b := binary{pkg, dir, filepath.Join(scratch, fmt.Sprintf("%03d-%t.test", len(binaries), race))}
		args := []string{"test", "-c", "-o", b.path}
		if race {
			args = append(args, "-race")
		}
		if err := command(ctx, "go", append(args, pkg)...).Run(); err != nil {
			return nil, fmt.Errorf("compiling the tests of %s: %w", pkg, err)
		}
		binaries = append(binaries, b)
	}
	if len(binaries) == 0 {
		return nil, fmt.Errorf("no tests in %s", strings.Join(packages, " "))
	}
	return binaries, nil
}

func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = os.Stderr
	return cmd
}
