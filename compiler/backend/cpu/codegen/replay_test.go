package codegen

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// TestKnownSchedules replays the schedules of testdata/schedules, each of which once made wrong code or none, in every
// mode. A file has a workload, a trace and the number of workers; its name says what was wrong.
func TestKnownSchedules(t *testing.T) {
	files, err := filepath.Glob("testdata/schedules/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no schedules: %v", err)
	}
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			var cases []testCase
			for _, file := range files {
				c, err := readCase(file)
				if err != nil {
					t.Logf("%s: refused: %v", file, err)
					continue
				}
				cases = append(cases, c)
			}
			checkCases(t, t, m, cases)
		})
	}
}

func readCase(file string) (testCase, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return testCase{}, err
	}
	workload, rest, _ := strings.Cut(string(data), "tilth-trace")
	trace, workers, _ := strings.Cut(rest, "workers ")
	var c testCase
	if _, err := fmt.Sscan(workers, &c.workers); err != nil {
		return c, fmt.Errorf("number of workers: %w", err)
	}
	if c.workload, err = expr.Parse(workload); err != nil {
		return c, err
	}
	c.args = fillArgs(c.workload, 1)
	c.schedule, err = schedule.Replay(c.workload, []byte("tilth-trace"+trace))
	return c, err
}
