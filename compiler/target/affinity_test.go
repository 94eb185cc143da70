package target

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// processors returns the processors that the thread may use.
func processors(t *testing.T) (list []int) {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	for n := range 1024 {
		if set.IsSet(n) {
			list = append(list, n)
		}
	}
	return list
}

func TestRunOnPinsThreadsAndChildren(t *testing.T) {
	all := processors(t)
	last := all[len(all)-1:]
	want := errors.New("from inside")
	err := RunOn(last, func() error {
		if got := processors(t); !slices.Equal(got, last) {
			t.Errorf("the thread runs on %v, want %v", got, last)
		}
		text, err := exec.CommandContext(t.Context(), "grep", "Cpus_allowed_list", "/proc/self/status").Output()
		if _, list, _ := strings.Cut(string(text), "\t"); err != nil || strings.TrimSpace(list) != FormatCPUs(last) {
			t.Errorf("a process runs on %q, %v; want %v", text, err, last)
		}
		return want
	})
	if !errors.Is(err, want) {
		t.Errorf("the error is %v", err)
	}
	if err := RunOn(nil, func() error {
		if got := processors(t); !slices.Equal(got, all) {
			t.Errorf("afterwards, the thread runs on %v, want %v", got, all)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func TestMissingProcessorsAreRefused(t *testing.T) {
	err := RunOn([]int{1022, 1023}, func() error { t.Error("called"); return nil })
	if err == nil || !strings.Contains(err.Error(), "processors 1022-1023") {
		t.Errorf("the error is %v", err)
	}
}
