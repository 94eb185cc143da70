package tvm

import (
	"cmp"
	"fmt"
	"slices"
)

// Reason is why a line of a log is not a seed.
type Reason string

// Reasons.
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

// refusal is the error of a line that is not a seed.
type refusal struct {
	reason Reason
	detail string
}

// Error returns the reason with its detail.
func (r *refusal) Error() string {
	if r.detail == "" {
		return string(r.reason)
	}
	return string(r.reason) + ": " + r.detail
}

// mostDetail bounds the quoted part of a line.
const mostDetail = 120

func refuse(reason Reason, format string, args ...any) error {
	detail := fmt.Sprintf(format, args...)
	if len(detail) > mostDetail {
		detail = fmt.Sprintf("%.*s...", mostDetail, detail)
	}
	return &refusal{reason, printable(detail)}
}

// printable removes control characters.
func printable(text string) string {
	clean := []rune(text)
	for i, r := range clean {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			clean[i] = '?'
		}
	}
	return string(clean)
}

// Refused counts the lines refused for one reason.
type Refused struct {
	Reason Reason
	Count  int
	// Line is the number of the first such line, and Detail quotes it.
	Line   int
	Detail string
}

// refusals counts lines by reason.
type refusals map[Reason]*Refused

func (r refusals) add(line int, err *refusal) {
	if r[err.reason] == nil {
		r[err.reason] = &Refused{Reason: err.reason, Line: line, Detail: err.detail}
	}
	r[err.reason].Count++
}

// list returns the refusals, most frequent first.
func (r refusals) list() (all []Refused) {
	for _, one := range r {
		all = append(all, *one)
	}
	slices.SortFunc(all, func(a, b Refused) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Line, b.Line)) })
	return all
}
