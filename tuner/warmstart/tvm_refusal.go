package warmstart

import (
	"cmp"
	"fmt"
	"slices"
)

// RefusalReason is why a line of a log is not a seed.
type RefusalReason string

// Reasons.
const (
	Malformed     RefusalReason = "malformed line"
	TooLong       RefusalReason = "line too long"
	OtherFormat   RefusalReason = "line of another format"
	Failed        RefusalReason = "failed measurement"
	GPUTarget     RefusalReason = "GPU target"
	OtherTarget   RefusalReason = "other target"
	Unknown       RefusalReason = "unknown operator or template"
	OtherLayout   RefusalReason = "other layout"
	OtherType     RefusalReason = "other element type than float32"
	Structure     RefusalReason = "other structure of loops"
	Ambiguous     RefusalReason = "ambiguous shapes"
	Undefined     RefusalReason = "operator of a program, which the log does not define"
	OutOfBounds   RefusalReason = "shapes out of bounds"
	TooManyOthers RefusalReason = "too many operators"
)

// refusal is the error of a line that is not a seed.
type refusal struct {
	reason RefusalReason
	detail string
}

// Error returns the reason with its detail.
func (r *refusal) Error() string {
	if r.detail == "" {
		return string(r.reason)
	}
	return string(r.reason) + ": " + r.detail
}

// maxDetail bounds the quoted part of a line.
const maxDetail = 120

func refuse(reason RefusalReason, format string, args ...any) error {
	detail := fmt.Sprintf(format, args...)
	if len(detail) > maxDetail {
		detail = fmt.Sprintf("%.*s...", maxDetail, detail)
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
	Reason RefusalReason
	Count  int
	// Line is the number of the first such line, and Detail quotes it.
	Line   int
	Detail string
}

// refusals counts lines by reason.
type refusals map[RefusalReason]*Refused

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
