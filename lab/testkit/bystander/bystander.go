package bystander

import (
	"os"
	"os/exec"
	"testing"
)

// Process starts an idle process of this user that a hostile program must not harm. It ends with the test.
func Process(t testing.TB) *os.Process {
	t.Helper()
	sleeper := exec.Command("sleep", "600")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = sleeper.Process.Kill()
		_ = sleeper.Wait()
	})
	return sleeper.Process
}
