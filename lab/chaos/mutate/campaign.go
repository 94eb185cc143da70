package mutate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// mutation is one change that breaks a promise.
type mutation struct {
	// name describes the broken behaviour.
	name string
	// file is where, from the module's folder; from occurs there once, and becomes to.
	file, from, to string
	// pkg and test say who must notice. The test is one that docs/reliability.md names.
	pkg, test string
}

// verdict is the result of a mutation.
type verdict string

const (
	killed   verdict = "killed"   // the test fails with the mutation and passes without it
	survived verdict = "SURVIVED" // the test passes with the mutation
	stale    verdict = "STALE"    // the mutation does not fit the code, or does not compile
	broken   verdict = "BROKEN"   // the test fails without any mutation
)

// campaign tries mutations on a module.
type campaign struct {
	root  string
	limit time.Duration
	// tests has, by package and name, what became of tests without a mutation.
	tests sync.Map
}

// mutate returns the changed text of the mutation's file.
func (m mutation) mutate(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), m.from); n != 1 {
		return "", fmt.Errorf("%s has %q %d times, want once", m.file, m.from, n)
	}
	return strings.Replace(string(text), m.from, m.to, 1), nil
}

// try runs a mutation's test with and, unless that was done before, without it.
func (c *campaign) try(ctx context.Context, m mutation) (verdict, error) {
	text, err := m.mutate(c.root)
	if err != nil {
		return stale, err
	}
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return stale, err
	}
	defer os.RemoveAll(dir)
	overlay, err := c.overlay(dir, m.file, text)
	if err != nil {
		return stale, err
	}
	if out, err := c.test(ctx, m, overlay, "^$"); err != nil {
		return stale, fmt.Errorf("it does not compile: %s", last(out))
	}
	if err := c.without(ctx, m); err != nil {
		return broken, err
	}
	if _, err := c.test(ctx, m, overlay, "^"+m.test+"$"); err == nil {
		return survived, nil
	}
	return killed, nil
}

// overlay has the compiler read the file's changed text.
func (c *campaign) overlay(dir, file, text string) (string, error) {
	changed, overlay := filepath.Join(dir, filepath.Base(file)), filepath.Join(dir, "overlay.json")
	path, err := filepath.Abs(filepath.Join(c.root, file))
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		return "", err
	}
	return overlay, errors.Join(os.WriteFile(changed, []byte(text), 0o600), os.WriteFile(overlay, data, 0o600))
}

// without has the test pass on the tree as it is, once for all mutations.
func (c *campaign) without(ctx context.Context, m mutation) error {
	passes, _ := c.tests.LoadOrStore(m.pkg+" "+m.test, sync.OnceValue(func() error {
		out, err := c.test(ctx, m, "", "^"+m.test+"$")
		if err != nil {
			return fmt.Errorf("%s fails without a mutation: %s", m.test, last(out))
		}
		if strings.Contains(out, "no tests to run") {
			return fmt.Errorf("there is no %s in %s", m.test, m.pkg)
		}
		return nil
	}))
	return passes.(func() error)()
}

func (c *campaign) test(ctx context.Context, m mutation, overlay, pattern string) (string, error) {
	args := []string{"test", "-count=1", "-timeout", c.limit.String(), "-run", pattern}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, m.pkg)...)
	cmd.Dir = c.root
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// last is the end of what a command printed.
func last(out string) string {
	const most = 2000
	out = strings.TrimSpace(out)
	return out[max(0, len(out)-most):]
}
