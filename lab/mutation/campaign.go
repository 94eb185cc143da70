package mutation

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
	// file is relative to the module's folder. from must occur there exactly once, and is replaced by to.
	file, from, to string
	// pkg and test identify the test that must fail, as named in docs/reliability.md.
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

// campaign tries mutations of a module.
type campaign struct {
	root  string
	limit time.Duration
	// tests caches the results of unmodified tests, by package and name.
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

// try runs a mutation's test with and, unless cached, without the mutation.
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

// overlay writes an overlay that replaces the file's text.
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

// without checks that the test passes on the unmodified tree, once for all mutations.
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

// last returns the end of a command's output.
func last(out string) string {
	const most = 2000
	out = strings.TrimSpace(out)
	return out[max(0, len(out)-most):]
}
