package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// setting is one way to run the suite.
type setting struct {
	Race       bool `json:"race"`
	Processors int  `json:"gomaxprocs"`
}

func (s setting) String() string {
	mode := "plain"
	if s.Race {
		mode = "race"
	}
	return fmt.Sprintf("%s, GOMAXPROCS=%d", mode, s.Processors)
}

// result is one run of the suite.
type result struct {
	setting
	At       time.Time `json:"at"`
	Seconds  float64   `json:"seconds"`
	Packages int       `json:"packages"`
	Failures []failure `json:"failures,omitempty"`
}

// failure is a test that failed, or a package whose process ended without saying which did.
type failure struct {
	Package string `json:"package"`
	Test    string `json:"test"`
	// Output is the file that has what the package's tests printed.
	Output string `json:"output"`
}

func (r result) String() string {
	if len(r.Failures) == 0 {
		return fmt.Sprintf("%d packages passed in %.0f s", r.Packages, r.Seconds)
	}
	var names []string
	for _, f := range r.Failures {
		names = append(names, f.Package+" "+f.Test)
	}
	return fmt.Sprintf("failed in %.0f s: %s", r.Seconds, strings.Join(names, ", "))
}

// pass runs the tests of all packages once, with the cases that a seed draws.
func pass(ctx context.Context, o options, s setting, seed int64, binaries []binary) result {
	r := result{setting: s, At: time.Now().UTC(), Packages: len(binaries)}
	var mu sync.Mutex
	var wait sync.WaitGroup
	slots := make(chan struct{}, max(o.parallel, 1))
	for _, b := range binaries {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			failures := b.run(ctx, o, s, seed, r.At)
			mu.Lock()
			defer mu.Unlock()
			r.Failures = append(r.Failures, failures...)
		})
	}
	wait.Wait()
	r.Seconds = time.Since(r.At).Seconds()
	slices.SortFunc(r.Failures, func(a, b failure) int {
		return cmp.Or(strings.Compare(a.Package, b.Package), strings.Compare(a.Test, b.Test))
	})
	return r
}

// run runs one package's tests where `go test` does, in the package's folder.
func (b binary) run(ctx context.Context, o options, s setting, seed int64, at time.Time) []failure {
	cmd := exec.CommandContext(ctx, b.path, "-test.v", fmt.Sprintf("-test.timeout=%s", o.timeout))
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", s.Processors), fmt.Sprintf("TILTH_TEST_SEED=%d", seed))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if err == nil || ctx.Err() != nil {
		return nil
	}
	output := filepath.Join(o.keep, fmt.Sprintf("%s-%s.log", at.Format("20060102-150405"), strings.ReplaceAll(b.pkg, "/", "-")))
	if err := os.WriteFile(output, out.Bytes(), 0o600); err != nil {
		err = fmt.Errorf("keeping the output: %w", err)
		output = err.Error()
	}
	var failures []failure
	for _, test := range failed(out.Bytes(), err) {
		failures = append(failures, failure{Package: b.pkg, Test: test, Output: output})
	}
	return failures
}

var failLine = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// failed names the tests that failed by what a package printed, those with failing parts by their parts alone.
func failed(output []byte, err error) []string {
	var names []string
	for _, match := range failLine.FindAllSubmatch(output, -1) {
		names = append(names, string(match[1]))
	}
	parents := slices.Clone(names)
	names = slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(parents, func(other string) bool { return strings.HasPrefix(other, name+"/") })
	})
	if len(names) > 0 {
		return names
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return []string{"(" + exit.String() + ")"}
	}
	return []string{"(" + err.Error() + ")"}
}
