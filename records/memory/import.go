package memory

import (
	"context"
	"errors"
	"fmt"
	"io"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// Import implements records.Measurements. It holds all records in memory until the last has arrived.
func (s *Store) Import(ctx context.Context, next func() (*tilthv1.Record, error)) (imported, skipped uint64, err error) {
	all, err := s.collect(ctx, next)
	if err != nil {
		return 0, 0, err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.write(nil); err != nil {
		return 0, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, add := range all {
		if s.addRecord(add) {
			imported++
		} else {
			skipped++
		}
	}
	return imported, skipped, nil
}

// collect reads all records, up to the store's free space.
func (s *Store) collect(ctx context.Context, next func() (*tilthv1.Record, error)) (all []records.AddRecord, err error) {
	incoming, err := records.NewIncoming()
	if err != nil {
		return nil, err
	}
	for room := s.max - s.SizeBytes(); ; {
		r, err := next()
		if errors.Is(err, io.EOF) {
			return all, context.Cause(ctx)
		}
		if err == nil {
			err = incoming.Admit(r)
		}
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return nil, err
		}
		add := records.NewAddRecord(r)
		if room -= int64(len(add.Record.Row)) + rowBytes; room < 0 {
			return nil, fmt.Errorf("the records take more than %d bytes of memory: keep them in a file", s.max)
		}
		all = append(all, add)
	}
}
