package schedule

import (
	"strings"
	"testing"
)

func TestPanicBecomesAnErrorOfOneLine(t *testing.T) {
	guarded := func() (err error) {
		defer RecoverAs(&err)
		defer func() { panic(recover()) }() // as functions do that recover from other panics
		New(nil)                            // reads the workload
		return nil
	}
	err := guarded()
	if err == nil || !strings.Contains(err.Error(), "compiler/schedule/schedule.go:") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
}
