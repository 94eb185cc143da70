package chaos

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	gotoken "go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The farm's program is built with active failpoints. A failpoint is a comment in the source,
//
//	// gofail: var beforeSync struct{}
//
// in the syntax of gofail, which bbolt also uses. The ordinary compiler ignores it, so it costs nothing.
// buildWithFailpoints compiles with an overlay that replaces each such comment by a call. An environment variable
// configures the actions:
//
//	TILTH_FAILPOINTS='beforeSync=3:kill;afterSync=1:sleep:50;lackOfDiskSpace=7:error:disk full'
//
// The process kills itself at the third execution of beforeSync, and sleeps 50 ms at the first of afterSync. A
// failpoint with a type, such as
//
//	// gofail: var lackOfDiskSpace string
//	// return errors.New(lackOfDiskSpace)
//
// runs the lines below it with the text of its error. A failpoint that fires prints a line on standard error; see
// firedFailpoints.

// failpointVariable is the environment variable that configures the failpoints.
const failpointVariable = "TILTH_FAILPOINTS"

//go:embed testdata/failpoint_overlay.go.txt
var failpointRuntime string

// buildWithFailpoints runs a build command of go in dir, a folder of the module, with the failpoints of the given
// packages active. It returns their sorted names.
func buildWithFailpoints(ctx context.Context, dir string, packages, command []string) (names []string, err error) {
	scratch, err := os.MkdirTemp("", "failpoints")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	b := &failpointBuild{dir: dir, scratch: scratch, replace: map[string]string{}}
	for _, p := range packages {
		found, err := b.add(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("failpoints of %s: %w", p, err)
		}
		names = append(names, found...)
	}
	if err := b.compile(ctx, command); err != nil {
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}

// failpointBuild is the state of a build.
type failpointBuild struct {
	dir, scratch string
	replace      map[string]string // overlay: paths of this module's files to their replacements
	modules      []string          // "PATH=FOLDER" of other modules, which overlays cannot change, and their copies
}

// add activates the failpoints of a package.
func (b *failpointBuild) add(ctx context.Context, path string) (names []string, err error) {
	text, err := goCommand(ctx, b.dir, "list", "-json=Dir,Module", path)
	if err != nil {
		return nil, err
	}
	var p struct {
		Dir    string
		Module struct {
			Path, Dir string
			Main      bool
		}
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return nil, err
	}
	files, err := rewriteFolder(p.Dir)
	if err != nil {
		return nil, err
	}
	to := p.Dir
	if !p.Module.Main {
		copied := filepath.Join(b.scratch, fmt.Sprintf("module%d", len(b.modules)))
		if err := os.CopyFS(copied, os.DirFS(p.Module.Dir)); err != nil {
			return nil, err
		}
		b.modules = append(b.modules, p.Module.Path+"="+copied)
		within, err := filepath.Rel(p.Module.Dir, p.Dir)
		if err != nil {
			return nil, err
		}
		to = filepath.Join(copied, within)
	}
	for _, f := range files {
		names = append(names, f.points...)
		file := filepath.Join(to, f.name)
		if p.Module.Main {
			b.replace[file] = filepath.Join(b.scratch, fmt.Sprintf("%d.go", len(b.replace)))
			file = b.replace[file]
		}
		if err := os.WriteFile(file, []byte(f.text), 0o644); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// compile builds with the overlay and with the copies of other modules.
func (b *failpointBuild) compile(ctx context.Context, command []string) error {
	overlay, err := json.Marshal(struct{ Replace map[string]string }{b.replace})
	if err != nil {
		return err
	}
	path := filepath.Join(b.scratch, "overlay.json")
	if err := os.WriteFile(path, overlay, 0o644); err != nil {
		return err
	}
	mod, err := b.modFile(ctx)
	if err != nil {
		return err
	}
	// Omit debug information, because linking it takes as long as everything else.
	_, err = goCommand(ctx, b.dir, append(command, "-trimpath", "-ldflags=-w", "-modfile", mod, "-overlay", path)...)
	return err
}

// modFile copies the module's go.mod and go.sum and replaces other modules by their copies.
func (b *failpointBuild) modFile(ctx context.Context) (string, error) {
	original, err := goCommand(ctx, b.dir, "env", "GOMOD")
	if err != nil {
		return "", err
	}
	original = strings.TrimSpace(original)
	mod := filepath.Join(b.scratch, "go.mod")
	for from, to := range map[string]string{original: mod, strings.TrimSuffix(original, "mod") + "sum": filepath.Join(b.scratch, "go.sum")} {
		content, err := os.ReadFile(from)
		if errors.Is(err, os.ErrNotExist) {
			continue // a module without dependencies has no go.sum
		}
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(to, content, 0o644); err != nil {
			return "", err
		}
	}
	for _, m := range b.modules {
		if _, err := goCommand(ctx, b.scratch, "mod", "edit", "-replace", m, mod); err != nil {
			return "", err
		}
	}
	return mod, nil
}

func goCommand(ctx context.Context, dir string, arguments ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", arguments...)
	cmd.Dir = dir
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s", arguments[0], err, strings.TrimSpace(complaint.String()))
	}
	return string(out), nil
}

// failpointFile is a rewritten file.
type failpointFile struct {
	name, text string
	points     []string
}

// rewriteFolder returns the files of a folder that have failpoints, rewritten, and the file with their runtime.
func rewriteFolder(folder string) (files []failpointFile, err error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	name := ""
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		text, points := rewrite(string(source))
		if len(points) == 0 {
			continue
		}
		parsed, err := parser.ParseFile(gotoken.NewFileSet(), path, source, parser.PackageClauseOnly)
		if err != nil {
			return nil, err
		}
		name = parsed.Name.Name
		files = append(files, failpointFile{filepath.Base(path), text, points})
	}
	if name == "" {
		return nil, errors.New("there are none")
	}
	called := strings.Replace(failpointRuntime, "package overlay", "package "+name, 1)
	return append(files, failpointFile{name: "failpoint_overlay.go", text: called}), nil
}

var failpointComment = regexp.MustCompile(`^(\s*)// gofail: var (\w+) (struct\{\}|string)\s*$`)

// rewrite replaces a source's failpoints by calls on the same lines, and returns their names.
func rewrite(source string) (text string, names []string) {
	lines := strings.Split(source, "\n")
	for i := 0; i < len(lines); i++ {
		m := failpointComment.FindStringSubmatch(lines[i])
		if m == nil {
			continue
		}
		names = append(names, m[2])
		if m[3] == "struct{}" {
			lines[i] = fmt.Sprintf("%stilthFailpoint(%q)", m[1], m[2])
			continue
		}
		lines[i] = fmt.Sprintf("%sif %s, fires := tilthFailpoint(%q); fires { _ = %s", m[1], m[2], m[2], m[2])
		for i+1 < len(lines) && strings.HasPrefix(strings.TrimSpace(lines[i+1]), "//") {
			i++
			lines[i] = strings.Replace(lines[i], "//", "", 1)
		}
		lines[i] += " }"
	}
	return strings.Join(lines, "\n"), names
}

// firedPrefix is the prefix of the line that a firing failpoint prints.
const firedPrefix = "failpoint fires: "

// firedFailpoints counts the firings of each failpoint in the standard error of processes.
func firedFailpoints(output string) map[string]int {
	times := map[string]int{}
	for line := range strings.Lines(output) {
		if name, is := strings.CutPrefix(strings.TrimSpace(line), firedPrefix); is {
			times[name]++
		}
	}
	return times
}
