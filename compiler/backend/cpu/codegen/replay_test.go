package codegen

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/kerneltest"
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
			var cases []kerneltest.Case
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

func readCase(file string) (kerneltest.Case, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return kerneltest.Case{}, err
	}
	workload, rest, _ := strings.Cut(string(data), "tilth-trace")
	trace, workers, _ := strings.Cut(rest, "workers ")
	var c kerneltest.Case
	if _, err := fmt.Sscan(workers, &c.Workers); err != nil {
		return c, fmt.Errorf("number of workers: %w", err)
	}
	if c.Workload, err = expr.Parse(workload); err != nil {
		return c, err
	}
	c.Args = kerneltest.Fill(c.Workload, 1)
	c.Schedule, err = schedule.Replay(c.Workload, []byte("tilth-trace"+trace))
	return c, err
}
