package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// GroupPage implements records.Measurements.
func (s *Store) GroupPage(target, after string, limit int) (groups []records.Group, next string, err error) {
	from, beyond := records.NamesOf(target)
	s.mu.RLock()
	defer s.mu.RUnlock()
	for key, g := range s.groups.from(max(from, after)) {
		switch {
		case key >= beyond:
			return groups, "", nil
		case after != "" && key == after || g.rows.count == 0:
		case len(groups) == limit:
			return groups, groups[limit-1].Name(), nil
		default:
			groups = append(groups, g.Group)
		}
	}
	return groups, "", nil
}

// KeyPage implements records.Measurements.
func (s *Store) KeyPage(of records.Group, from records.Key, limit int) (keys []records.Key, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	g, there := s.groups.get(of.Name())
	if !there {
		return nil, nil
	}
	for key := range g.rows.from(string(from[:])) {
		if len(keys) == limit {
			break
		}
		keys = append(keys, records.Key([]byte(key)))
	}
	return keys, nil
}

// RecordsOf implements records.Measurements.
func (s *Store) RecordsOf(of records.Group, keys []records.Key, maxBytes int) (found []*tilthv1.Record, looked int, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	g, there := s.groups.get(of.Name())
	if !there {
		return nil, len(keys), nil
	}
	for size := 0; looked < len(keys) && (looked == 0 || size < maxBytes); looked++ {
		if _, there := g.rows.get(string(keys[looked][:])); !there {
			continue
		}
		r, err := g.record(keys[looked])
		if err != nil {
			return nil, 0, err
		}
		if len(found) == 0 {
			r.Workload = bytes.Clone(s.workloads[g.Workload])
		}
		found, size = append(found, &r.Record), size+proto.Size(&r.Record)
	}
	return found, looked, nil
}

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
