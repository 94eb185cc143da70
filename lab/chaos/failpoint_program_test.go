package chaos

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const failpointProgram = `package main

import (
	"errors"
	"fmt"
)

func work() error {
	// gofail: var diskFull string
	// return errors.New("work: " + diskFull)
	return errors.New("nothing failed")
}

func main() {
	for range 3 {
		// gofail: var beforeWork struct{}
		fmt.Println(work())
	}
}
`

func TestPointDoesWhatTheEnvironmentSaysAtTheTimeThatItSays(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.com/p\n\ngo 1.26\n", "main.go": failpointProgram} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	binary := filepath.Join(dir, "p")
	names, err := buildWithFailpoints(t.Context(), dir, []string{"."}, []string{"build", "-o", binary})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(names, " "); got != "beforeWork diskFull" {
		t.Errorf("points are %s", got)
	}
	const well = "nothing failed\n"
	for armed, want := range map[string]struct {
		out    string
		fired  string
		killed bool
	}{
		"":                                 {well + well + well, "", false},
		"beforeWork=3:kill":                {well + well, "beforeWork", true},
		"diskFull=2:error:full":            {well + "work: full\n" + well, "diskFull", false},
		"beforeWork=1:sleep:1;unknown=1:x": {well + well + well, "beforeWork", false},
	} {
		cmd := exec.Command(binary)
		cmd.Env = append(os.Environ(), failpointVariable+"="+armed)
		var complaint strings.Builder
		cmd.Stderr = &complaint
		out, err := cmd.Output()
		killed := err != nil && cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
		if string(out) != want.out || killed != want.killed {
			t.Errorf("%q: %q, %v", armed, out, err)
		}
		if times := firedFailpoints(complaint.String()); len(times) > 1 || want.fired != "" && times[want.fired] != 1 {
			t.Errorf("%q: fired %v", armed, times)
		}
	}
}

func TestPackageWithoutPointsIsRefused(t *testing.T) {
	if _, err := buildWithFailpoints(t.Context(), ".", []string{"."}, []string{"build"}); err == nil || !strings.Contains(err.Error(), "there are none") {
		t.Error(err)
	}
}
