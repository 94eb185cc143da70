package opencl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"pgregory.net/rapid"
)

// oclgrind is a library that interprets kernels and detects races.
const oclgrind = "/usr/lib/oclgrind/liboclgrind-rt.so"

// newInterpreter returns a player that runs cases with Oclgrind, if installed, and the file with its reports.
func newInterpreter(t *testing.T) (p *player, log string) {
	t.Helper()
	if _, err := os.Stat(oclgrind); errors.Is(err, os.ErrNotExist) {
		t.Skip("there is no Oclgrind; the Debian package oclgrind has it")
	}
	log = filepath.Join(t.TempDir(), "log")
	t.Setenv(LibraryVariable, oclgrind)
	t.Setenv("OCLGRIND_DATA_RACES", "1")
	t.Setenv("OCLGRIND_LOG", log)
	// Its optimiser generates switches on 4-bit integers, of which its interpreter compares 8 bits.
	t.Setenv("OCLGRIND_BUILD_OPTIONS", "-cl-opt-disable")
	return newPlayer(t), log
}

// TestOclgrindFindsNoRace cross-checks the simulated GPU.
func TestOclgrindFindsNoRace(t *testing.T) {
	p, log := newInterpreter(t)
	for name, draw := range map[string]func(*rapid.T) *expr.Workload{
		"any": kerneltest.DrawWorkload, "product": kerneltest.DrawProduct, "convolution": kerneltest.DrawConv, "rows": kerneltest.DrawRows,
		"totals": kerneltest.DrawTotals,
	} {
		t.Run(name, func(t *testing.T) {
			one := rapid.Custom(func(rt *rapid.T) kerneltest.Case { return drawn(rt, draw(rt).Merge(), p.on) })
			rapid.Check(t, func(rt *rapid.T) {
				p.check(t, rapid.SliceOfN(one, batchSize, batchSize).Draw(rt, "cases"))
				if found, err := os.ReadFile(log); err == nil && len(found) > 0 {
					rt.Fatalf("Oclgrind says\n%.2000s", found)
				}
			})
		})
	}
}

// TestKnownSchedulesAreInterpreted runs cases that Oclgrind once failed, each named after the fault.
func TestKnownSchedulesAreInterpreted(t *testing.T) {
	p, _ := newInterpreter(t)
	files, err := filepath.Glob("testdata/schedules/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d cases, %v", len(files), err)
	}
	for _, file := range files {
		c, err := kerneltest.ReadCase(file)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		p.check(t, []kerneltest.Case{c})
	}
}

// barrier matches a barrier between threads of a kernel.
var barrier = regexp.MustCompile(`(?m)^ +BARRIER\(\);$`)

// TestOclgrindFindsMissingBarriers uses a product whose operands go through shared memory.
func TestOclgrindFindsMissingBarriers(t *testing.T) {
	p, log := newInterpreter(t)
	w := kerneltest.Product(t, 32, 32, 32)
	s := Backend{}.Space(w, p.on, schedule.Strict)
	made, err := s.Apply(s.Default())
	if err != nil {
		t.Fatal(err)
	}
	c := kerneltest.Case{Workload: w, Schedule: made, Workers: 1, Args: kerneltest.Fill(w, 1)}
	path := filepath.Join(p.dir, "module")
	p.module(t, c, path)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	table, code, _ := strings.Cut(string(text), "\ncode ")
	_, code, _ = strings.Cut(code, "\n")
	code = barrier.ReplaceAllString(code, "")
	if err := os.WriteFile(path, fmt.Appendf(nil, "%s\ncode %d 0\n%s", table, len(code), code), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := kerneltest.Run([]string{p.program, library(), path}, []kerneltest.Case{c}, nil); err != nil {
		t.Fatal(err)
	}
	if found, err := os.ReadFile(log); err != nil || !strings.Contains(string(found), "data race at local memory") {
		t.Errorf("it is not found: %v, %s", err, found)
	}
}
