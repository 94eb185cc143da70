package licences

import (
	"cmp"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
)

// Module is a module in a program, with its licence.
type Module struct {
	Path, Version string
	// Sum is the module's line in go.sum, or empty for the standard library.
	Sum string
	// Licence is an SPDX expression.
	Licence string
	Texts   []Text
}

// StandardLibrary is the path of Go's standard library in lists of modules.
const StandardLibrary = "stdlib"

// OfProgram returns the modules of a Go program, sorted by path, including the standard library but not the
// program's own module. root is the folder of the program's module; the module cache must contain the others.
func OfProgram(ctx context.Context, program, root string) ([]Module, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	dirs, err := folders(ctx, root, info.Deps)
	if err != nil {
		return nil, err
	}
	goroot, err := goEnv(ctx, "GOROOT")
	if err != nil {
		return nil, err
	}
	modules := []Module{{Path: StandardLibrary, Version: strings.TrimPrefix(info.GoVersion, "go")}}
	dirs[StandardLibrary] = goroot
	for _, d := range info.Deps {
		if d.Replace != nil {
			return nil, fmt.Errorf("%s is replaced by %s: a release is of modules that everybody can fetch", d.Path, d.Replace.Path)
		}
		modules = append(modules, Module{Path: d.Path, Version: d.Version, Sum: d.Sum})
	}
	for i := range modules {
		m := &modules[i]
		if m.Licence, m.Texts, err = OfFolder(dirs[m.Path]); err != nil {
			return nil, fmt.Errorf("licence of %s: %w", m.Path, err)
		}
		for _, id := range strings.Split(m.Licence, " AND ") {
			if !slices.Contains(Permissive, id) {
				return nil, fmt.Errorf("%s has the licence %s, which is not permissive", m.Path, m.Licence)
			}
		}
	}
	slices.SortFunc(modules, func(a, b Module) int { return cmp.Compare(a.Path, b.Path) })
	return modules, nil
}

// folders returns the modules' folders in the module cache, by path.
func folders(ctx context.Context, root string, modules []*debug.Module) (map[string]string, error) {
	dirs := map[string]string{}
	if len(modules) == 0 {
		return dirs, nil
	}
	args := []string{"mod", "download", "-json"}
	for _, m := range modules {
		args = append(args, m.Path+"@"+m.Version)
	}
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = root
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go mod download: %w", said(err))
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var m struct{ Path, Dir string }
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			return dirs, nil
		} else if err != nil {
			return nil, fmt.Errorf("go mod download: %w", err)
		}
		dirs[m.Path] = m.Dir
	}
}

func goEnv(ctx context.Context, name string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", name).Output()
	if err != nil {
		return "", fmt.Errorf("go env %s: %w", name, said(err))
	}
	return strings.TrimSpace(string(out)), nil
}

// said adds a command's standard error to its error.
func said(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}
