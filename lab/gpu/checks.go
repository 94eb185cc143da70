package gpu

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tilth-dev/tilth/lab/bench"
)

// caseParts is the number of parts of the conformance cases. Each part has every caseParts-th case.
const caseParts = 5

// every returns every nth folder in dir, starting with number from.
func every(dir string, n, from int) (folders []string, err error) {
	entries, err := os.ReadDir(dir)
	for k, e := range entries {
		if k%n == from && e.IsDir() {
			folders = append(folders, filepath.Join(dir, e.Name()))
		}
	}
	return folders, err
}

// counted counts the cases by outcome from the lines of 'tilth check --json', and returns the first failure.
func counted(lines []byte) (counts map[string]int, failure string) {
	counts = map[string]int{}
	scanner := bufio.NewScanner(bytes.NewReader(lines))
	for scanner.Scan() {
		var line struct{ Case, Status, Reason string }
		if json.Unmarshal(scanner.Bytes(), &line) != nil || line.Case == "" {
			continue
		}
		counts[line.Status]++
		if line.Status == "fail" && failure == "" {
			failure = line.Case + ": " + line.Reason
		}
	}
	return counts, failure
}

// cases runs a part of the conformance cases with default schedules. Failing cases are a finding. The step only fails
// if no case ran.
func (b *suite) cases(ctx context.Context, part int, numerics string, r *result) error {
	folders, err := every(b.options.cases, caseParts, part)
	if err != nil {
		return err
	}
	out, err := b.call(ctx, append(append([]string{"check"}, folders...), "--target", "cuda", "--numerics", numerics, "--json")...)
	counts, failure := counted(out)
	for status, n := range counts {
		r.Values[status] = float64(n)
	}
	if failure != "" {
		r.Notes["first failure"] = failure
	}
	if counts["fail"] > 0 {
		return nil
	}
	return err
}

// checkedPackages lists the models for the memory checkers: products by plain arithmetic, and by matrix
// instructions with normalisation and attention.
var checkedPackages = []struct{ model, numerics string }{{"mlp", "default"}, {"bert-tiny", "fast"}}

// checkerFound is the exit status of a checker that has findings.
const checkerFound = 86

// memoryChecker runs packages under NVIDIA's checkers of memory, races and barriers, if they are installed and
// support the card.
func memoryChecker(ctx context.Context, b *suite, r *result) error {
	if _, err := bench.Output(ctx, checker, "--version"); err != nil {
		r.Notes["skipped"] = checker + " is not installed"
		return nil
	}
	for _, c := range checkedPackages {
		pkg, err := b.untunedPackage(ctx, c.model, c.numerics)
		if err != nil {
			return err
		}
		for _, tool := range []string{"memcheck", "racecheck", "synccheck"} {
			found, err := b.checkMemory(ctx, tool, pkg)
			if err != nil {
				return err
			}
			r.Notes[c.model+" "+c.numerics+" "+tool] = found
		}
	}
	return nil
}

const checker = "compute-sanitizer"

// checkMemory runs a package under one of the checkers and returns what it found.
func (b *suite) checkMemory(ctx context.Context, tool, pkg string) (string, error) {
	out, err := bench.Output(ctx, checker, "--tool", tool, "--error-exitcode", fmt.Sprint(checkerFound), b.tilth, "run", pkg)
	// The checker writes to standard output, like the program.
	text := strings.TrimSpace(string(out))
	var exit *exec.ExitError
	switch {
	case strings.Contains(text, "Device not supported"):
		return "skipped: it does not support the device", nil
	case err == nil:
		return "nothing found", nil
	case errors.As(err, &exit) && exit.ExitCode() == checkerFound:
		return "FOUND: " + text[:min(len(text), bench.MaxComplaint)], nil
	}
	return "", fmt.Errorf("%s: %w: %s", tool, err, text[max(0, len(text)-bench.MaxComplaint):])
}
