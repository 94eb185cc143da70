package conformance

import (
	"fmt"
	"strings"
)

// Status is the outcome of a case.
type Status string

// The outcomes.
const (
	// Pass means that every output of every data set is as expected.
	Pass Status = "pass"
	// Fail means that an output is wrong, the case crashed, hung or did not compile, or its files are broken.
	Fail Status = "fail"
	// Unsupported means that the compiler rejects the model.
	Unsupported Status = "unsupported"
)

// Result is the outcome of a case.
type Result struct {
	Case   string `json:"case"`
	Status Status `json:"status"`
	// MaxError is the largest absolute difference of an element from the expected one; nil if nothing was compared
	// or a difference is not finite.
	MaxError *float64 `json:"max_error"`
	// Reason is a single line: the cause of a failure, or the unsupported feature; empty for a pass.
	Reason string `json:"reason"`
	// infinite is set if a difference was not finite.
	infinite bool
}

// String returns the result as a readable line.
func (r Result) String() string {
	switch {
	case r.Status == Pass && r.MaxError != nil && *r.MaxError > 0:
		return fmt.Sprintf("%-11s %s (error %.2g)", r.Status, r.Case, *r.MaxError)
	case r.Status == Pass:
		return fmt.Sprintf("%-11s %s", r.Status, r.Case)
	}
	return fmt.Sprintf("%-11s %s: %s", r.Status, r.Case, r.Reason)
}

// failed returns a result with an error as the reason.
func failed(name string, err error) Result {
	return Result{Case: name, Status: Fail, Reason: oneLine(err)}
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// Summary counts results by status.
type Summary struct{ Pass, Fail, Unsupported int }

// Add counts a result.
func (s *Summary) Add(r Result) {
	switch r.Status {
	case Pass:
		s.Pass++
	case Fail:
		s.Fail++
	default:
		s.Unsupported++
	}
}

// Total returns the number of cases.
func (s Summary) Total() int { return s.Pass + s.Fail + s.Unsupported }

// String returns the summary as a line.
func (s Summary) String() string {
	return fmt.Sprintf("%d cases: %d pass, %d fail, %d unsupported", s.Total(), s.Pass, s.Fail, s.Unsupported)
}
