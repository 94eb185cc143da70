package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// releaseFolder is where 'make tutorials' puts the release that tutorials install.
const releaseFolder = ".tools/release"

// follow runs the steps of a tutorial in a temporary folder.
func follow(ctx context.Context, source string, steps []step, loud bool) error {
	dir, err := os.MkdirTemp("", "tilth-tutorial-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	script, err := write(dir, steps)
	if err != nil {
		return err
	}
	failure := shell(ctx, source, dir, script)
	last := -1
	for n, s := range steps {
		printed, err := os.ReadFile(printedBy(dir, n))
		if s.kind != "sh" || err != nil {
			continue
		}
		last = n
		if loud {
			fmt.Printf("%s----\n%s====\n", s.text, printed)
		}
	}
	if failure != nil && last >= 0 {
		printed, _ := os.ReadFile(printedBy(dir, last))
		return fmt.Errorf("%d: %w; it printed:\n%s", steps[last].line, failure, tail(string(printed), 30))
	}
	if failure != nil {
		return failure
	}
	return compare(dir, steps)
}

// compare checks the output that the tutorial shows.
func compare(dir string, steps []step) error {
	var faults []error
	printed := ""
	for n, s := range steps {
		switch s.kind {
		case "sh":
			text, err := os.ReadFile(printedBy(dir, n))
			if err != nil {
				return err
			}
			printed = string(text)
		case "text":
			if line := lacking(s.text, printed); line != "" {
				faults = append(faults, fmt.Errorf("%d: the commands before do not print %q, but:\n%s", s.line, line, tail(printed, 30)))
			}
		}
	}
	return errors.Join(faults...)
}

// printedBy returns the path of a step's output.
func printedBy(dir string, n int) string { return filepath.Join(dir, fmt.Sprintf("printed-%03d", n)) }

// write writes the script of all steps and the tutorial's files. The script stops at the first failure, and its
// background processes stop with it.
func write(dir string, steps []step) (string, error) {
	var script strings.Builder
	script.WriteString("trap 'exec >/dev/null 2>&1; trap \"\" TERM; kill 0' EXIT\nset -eo pipefail\ncd work\n")
	for n, s := range steps {
		switch s.kind {
		case "file":
			shown := filepath.Join(dir, fmt.Sprintf("shown-%03d", n))
			if err := os.WriteFile(shown, []byte(s.text), 0o600); err != nil {
				return "", err
			}
			fmt.Fprintf(&script, "mkdir -p '%s' && cp '%s' '%s'\n", filepath.Dir(s.name), shown, s.name)
		case "sh":
			fmt.Fprintf(&script, "exec >'%s' 2>&1\n%s", printedBy(dir, n), s.text)
		}
	}
	for _, folder := range []string{"work", "home", "tmp"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			return "", err
		}
	}
	return script.String(), nil
}

// shell runs a script as a user with an empty home, and then ends all processes that it started.
func shell(ctx context.Context, source, dir, script string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it takes longer than %v", limit))
	defer cancel()
	settings, err := goSettings(ctx)
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, "bash", "-c", script)
	c.Dir = dir
	c.Env = append(settings,
		"HOME="+filepath.Join(dir, "home"), "TMPDIR="+filepath.Join(dir, "tmp"), "LC_ALL=C.UTF-8", "NO_COLOR=1", "USER=tutorial",
		"SOURCE="+source, "RELEASE="+filepath.Join(source, releaseFolder), "PATH="+filepath.Join(source, "bin")+":"+os.Getenv("PATH"),
	)
	for _, name := range passed {
		if value, is := os.LookupEnv(name); is {
			c.Env = append(c.Env, name+"="+value)
		}
	}
	runtime.LockOSThread() // Pdeathsig refers to the thread that starts the process
	defer runtime.UnlockOSThread()
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
	err = c.Run()
	if c.Process != nil {
		end(c.Process.Pid)
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// end asks a process group to end, and kills it after a while.
func end(group int) {
	_ = syscall.Kill(-group, syscall.SIGTERM)
	for range 100 {
		if syscall.Kill(-group, 0) != nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	_ = syscall.Kill(-group, syscall.SIGKILL)
}

// passed lists the environment variables of network access.
var passed = []string{
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR",
}

// goSettings returns Go's settings from the user's home, which a tutorial's home lacks.
func goSettings(ctx context.Context) (variables []string, err error) {
	names := []string{"GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY", "GOSUMDB", "GONOSUMDB", "GONOPROXY", "GOTOOLCHAIN"}
	out, err := exec.CommandContext(ctx, "go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	values := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(values) != len(names) {
		return nil, fmt.Errorf("go env: %d values of %d variables", len(values), len(names))
	}
	for n, name := range names {
		variables = append(variables, name+"="+values[n])
	}
	return variables, nil
}

// tail returns the last lines of a text.
func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
