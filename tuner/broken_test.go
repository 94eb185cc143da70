package tuner

import (
	"errors"
	"strings"
	"testing"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// panicking is a search with a bug.
type panicking struct{}

func (panicking) Propose(int) []Candidate { panic("no such knob") }
func (panicking) Observe(Trial)           {}

func TestBugInASearchCostsTheJobAndNotTheTuner(t *testing.T) {
	r := &round{Handler: NewHandler(Config{}), job: &job{budget: &tilthv1.Budget{}, scheduler: scheduler{tasks: []*task{newTask(0, panicking{}, 1, known{})}}}}
	_, err := r.search(t.Context())
	var broken *brokenSearch
	if !errors.As(err, &broken) || !strings.Contains(err.Error(), "task 0: internal error: no such knob") {
		t.Errorf("got %v", err)
	}
}
