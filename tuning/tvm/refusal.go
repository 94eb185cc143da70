package tvm

import (
	"cmp"
	"fmt"
	"slices"
)

// Reason is why a line of a log is no seed.
type Reason string

// The reasons.
const (
	Malformed     Reason = "malformed line"
	TooLong       Reason = "line too long"
	OtherFormat   Reason = "line of another format"
	Failed        Reason = "failed measurement"
	GPUTarget     Reason = "GPU target"
	OtherTarget   Reason = "other target"
	Unknown       Reason = "unknown operator or template"
	OtherLayout   Reason = "other layout"
	OtherType     Reason = "other element type than float32"
	Structure     Reason = "other structure of loops"
	Ambiguous     Reason = "ambiguous shapes"
	Undefined     Reason = "operator of a program, which the log does not define"
	OutOfBounds   Reason = "shapes out of bounds"
	TooManyOthers Reason = "too many operators"
)

// refusal is the error of a line that is no seed.
type refusal struct {
	reason Reason
	detail string
}

// Error is the reason with what it is about.
func (r *refusal) Error() string {
	if r.detail == "" {
		return string(r.reason)
	}
	return string(r.reason) + ": " + r.detail
}

// mostDetail bounds what is shown of a line.
const mostDetail = 120

func refuse(reason Reason, format string, args ...any) error {
	detail := fmt.Sprintf(format, args...)
	if len(detail) > mostDetail {
		detail = fmt.Sprintf("%.*s...", mostDetail, detail)
	}
	return &refusal{reason, printable(detail)}
}

// printable is text without what a terminal would obey.
func printable(text string) string {
	clean := []rune(text)
	for i, r := range clean {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			clean[i] = '?'
		}
	}
	return string(clean)
}

// Refused are the lines that are no seeds for one reason.
type Refused struct {
	Reason Reason
	Count  int
	// Line is the number of the first of them, and Detail what it is about.
	Line   int
	Detail string
}

// refusals count lines by reason.
type refusals map[Reason]*Refused

func (r refusals) add(line int, err *refusal) {
	if r[err.reason] == nil {
		r[err.reason] = &Refused{Reason: err.reason, Line: line, Detail: err.detail}
	}
	r[err.reason].Count++
}

// list has the reasons of most lines first.
func (r refusals) list() (all []Refused) {
	for _, one := range r {
		all = append(all, *one)
	}
	slices.SortFunc(all, func(a, b Refused) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Line, b.Line)) })
	return all
}
