package soak

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
	"time"
)

// setting is a configuration of test runs.
type setting struct {
	Race       bool `json:"race"`
	Processors int  `json:"gomaxprocs"`
}

func (s setting) mode() string {
	if s.Race {
		return "race"
	}
	return "plain"
}

func (s setting) String() string { return fmt.Sprintf("%s, GOMAXPROCS=%d", s.mode(), s.Processors) }

func (s setting) compare(other setting) int {
	return cmp.Or(cmp.Compare(s.mode(), other.mode()), cmp.Compare(s.Processors, other.Processors))
}

// result is one run of a package's tests.
type result struct {
	Package string
	setting
	// Revision is the tested commit.
	Revision string
	At       time.Time
	Seconds  float64
	// CPUSeconds is the processor time of the tests and the child processes that they waited for.
	CPUSeconds float64
	// Seed is the seed of randomised tests.
	Seed int64
	// Failed lists the failed tests, or describes how the process ended if it named none.
	Failed []string
	// Output is the output file of a failure.
	Output string
}

func (r result) String() string {
	if len(r.Failed) == 0 {
		return fmt.Sprintf("%s (%s) passed in %.1f s, %.1f s of a processor", r.Package, r.setting, r.Seconds, r.CPUSeconds)
	}
	return fmt.Sprintf("%s (%s, TILTH_TEST_SEED=%d) failed in %.1f s: %s; its output is in %s",
		r.Package, r.setting, r.Seed, r.Seconds, strings.Join(r.Failed, ", "), r.Output)
}

// run runs one package's tests in the package's folder, like `go test`, with a seed.
func (b binary) run(ctx context.Context, o options, s setting, seed int64) result {
	r := result{Package: b.pkg, setting: s, Revision: o.revision, At: time.Now().UTC(), Seed: seed}
	cmd := exec.CommandContext(ctx, b.path, "-test.v", fmt.Sprintf("-test.timeout=%s", o.timeout))
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", s.Processors), fmt.Sprintf("TILTH_TEST_SEED=%d", seed))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	r.Seconds = time.Since(r.At).Seconds()
	if state := cmd.ProcessState; state != nil {
		r.CPUSeconds = (state.UserTime() + state.SystemTime()).Seconds()
	}
	if err == nil || ctx.Err() != nil {
		return r
	}
	r.Failed = failed(out.Bytes(), err)
	r.Output = filepath.Join(o.keep, fmt.Sprintf("%s-%s.log", r.At.Format("20060102-150405.000"), strings.ReplaceAll(b.pkg, "/", "-")))
	if err := errors.Join(os.MkdirAll(o.keep, 0o700), os.WriteFile(r.Output, out.Bytes(), 0o600)); err != nil {
		r.Output = fmt.Sprintf("not kept: %v", err)
	}
	return r
}

var failLine = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// failed parses the names of failed tests. Tests with failed subtests are named by the subtests only.
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
