package codegen

import (
	"path/filepath"
	"testing"

	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// TestKnownSchedules replays the schedules of testdata/schedules, each of which once generated wrong code or none, in
// every mode. A file has a workload, a trace and the number of workers; its name describes the fault.
func TestKnownSchedules(t *testing.T) {
	files, err := filepath.Glob("testdata/schedules/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no schedules: %v", err)
	}
	for _, m := range quick(modes, "avx512", "gcc") {
		t.Run(m.name, func(t *testing.T) {
			var cases []kerneltest.Case
			for _, file := range files {
				c, err := kerneltest.ReadCase(file)
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
