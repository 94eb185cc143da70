package rpc

import (
	"errors"

	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/state"
)

// finishedBy reports whether an ended job was finished under this lease, so that the call is a repetition.
func (s *Services) finishedBy(token *tilthv1.LeaseToken) bool {
	row, err := s.coordinator.Store().JobRow(token.GetSubject())
	if err != nil {
		if !errors.Is(err, records.ErrNotFound) {
			s.log.Error("read job", "job", token.GetSubject(), "error", err)
		}
		return false
	}
	return proto.Equal(row.GetFinishedBy(), token)
}

// repeated counts a repeated call, whose first response was probably lost.
func (s *Services) repeated(call string) { s.counts.Observe(state.Repeated{Call: call}) }
