package gpu

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// planned returns a bench with results of one card.
func planned(rows ...result) *suite {
	for k := range rows {
		rows[k].Card, rows[k].Version = "a card", "v1"
	}
	return &suite{options: options{version: "v1", limit: time.Minute}, card: "a card", ledger: &ledger{rows: rows}}
}

// TestStepsHaveNamesOfTheirOwn checks that names are unique, and that all steps in tables exist.
func TestStepsHaveNamesOfTheirOwn(t *testing.T) {
	var names []string
	for _, s := range steps() {
		if slices.Contains(names, s.name) {
			t.Errorf("%s is there twice", s.name)
		}
		names = append(names, s.name)
		if s.takes <= 0 || s.takes > 8*time.Minute {
			t.Errorf("%s takes %v", s.name, s.takes)
		}
	}
	for _, name := range allNames() {
		if !slices.Contains(names, name) {
			t.Errorf("%s is shown, and never done", name)
		}
	}
	if got := len(allNames()); got != 34 {
		t.Errorf("%d rows are compared", got)
	}
}

// TestFailedStepsRunLast checks that steps never tried come first, and that finished steps are omitted.
func TestFailedStepsRunLast(t *testing.T) {
	b := planned(result{Step: "machine", Error: "no"}, result{Step: "sandbox"}, result{Step: "cases 1 of 5 default", Error: "no"},
		result{Step: "cases 1 of 5 default"})
	var names []string
	for _, s := range b.pending(t.Context()) {
		names = append(names, s.name)
	}
	if len(names) != len(steps())-2 || names[len(names)-1] != "machine" || slices.Contains(names, "sandbox") {
		t.Errorf("the steps are %v", names)
	}
}

// TestStepIsExpectedToTakeWhatItTook includes the reserve and ignores failed attempts.
func TestStepIsExpectedToTakeWhatItTook(t *testing.T) {
	s := step{name: "x", takes: time.Minute}
	if got := planned(result{Step: "x", TookSeconds: 9, Error: "no"}).expected(s); got != time.Minute {
		t.Errorf("it is %v", got)
	}
	if got := planned(result{Step: "x", TookSeconds: 100}).expected(s); got != 125*time.Second {
		t.Errorf("it is %v", got)
	}
}

// TestPlanAddsUp checks the total of the remaining steps.
func TestPlanAddsUp(t *testing.T) {
	b := planned(result{Step: "machine"})
	b.only = []string{"machine", "sandbox", "points 1"}
	var out strings.Builder
	b.showPlan(&out)
	if got := out.String(); strings.Contains(got, "machine") || !strings.Contains(got, "1m30s in all, at least 2 runs of 1m0s") {
		t.Errorf("the plan is\n%s", got)
	}
}

// TestSandboxThatWorkedIsUsed checks the sandbox of later steps.
func TestSandboxThatWorkedIsUsed(t *testing.T) {
	b := planned()
	if b.sandbox = "required"; b.isolation() != "required" {
		t.Error("nothing was tried")
	}
	b.ledger = planned(result{Step: sandboxStep, Notes: map[string]string{"mode": "off"}}).ledger
	if b.isolation() != "off" {
		t.Error("the sandbox does not work")
	}
}
