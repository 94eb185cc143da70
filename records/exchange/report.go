package exchange

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/records"
)

// Report is the result of an exchange.
type Report struct {
	// Sent counts records now on the other side, or that would be in a dry run. There counts those it already had.
	Sent, There uint64
	// refused are records that are invalid or were not requested, by reason.
	refused map[string]*Refusal
}

// Refusal counts records refused for one reason.
type Refusal struct {
	// Reason is the invalid field.
	Reason  string `json:"reason"`
	Records uint64 `json:"records"`
	// First is the error of the first refused record.
	First string `json:"first"`
}

// refuse counts a refused record.
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
		r.refused[reason] = &Refusal{Reason: reason, First: records.Cut(err.Error(), maxReasonBytes)}
	}
	r.refused[reason].Records++
}

// maxReasonBytes bounds the text of a refusal.
const maxReasonBytes = 512

// Refused returns the refusals sorted by reason.
func (r *Report) Refused() (all []Refusal) {
	for _, reason := range slices.Sorted(maps.Keys(r.refused)) {
		all = append(all, *r.refused[reason])
	}
	return all
}
