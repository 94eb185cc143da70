package trap

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/schedule"
)

func TestPanicBecomesAnErrorOfOneLine(t *testing.T) {
	guarded := func() (err error) {
		defer AsError(&err)
		schedule.New(nil) // reads the workload
		return nil
	}
	err := guarded()
	if err == nil || !strings.Contains(err.Error(), "compiler/schedule/schedule.go:") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
}
