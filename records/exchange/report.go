package exchange

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/records"
)

// Report is what an exchange came to.
type Report struct {
	// Sent records are now on the other side, or would be. There were those that it had.
	Sent, There uint64
	// refused are records that are not valid, or not what was asked for, by what is wrong with them.
	refused map[string]*Refusal
}

// Refusal counts records that were refused for one reason.
type Refusal struct {
	// Reason is the field that is at fault.
	Reason  string `json:"reason"`
	Records uint64 `json:"records"`
	// First says of the first of them what is wrong.
	First string `json:"first"`
}

// refuse counts a record that was refused.
func (r *Report) refuse(err error) {
	reason := "record"
	var invalid *records.InvalidError
	if errors.As(err, &invalid) {
		reason = cmp.Or(invalid.Field, reason)
	}
	if r.refused == nil {
		r.refused = map[string]*Refusal{}
	}
	if r.refused[reason] == nil {
		r.refused[reason] = &Refusal{Reason: reason, First: records.Cut(err.Error(), mostReasonBytes)}
	}
	r.refused[reason].Records++
}

// mostReasonBytes bounds what is said of a record that was refused.
const mostReasonBytes = 512

// Refused are the refusals, in the order of their reasons.
func (r *Report) Refused() (all []Refusal) {
	for _, reason := range slices.Sorted(maps.Keys(r.refused)) {
		all = append(all, *r.refused[reason])
	}
	return all
}
