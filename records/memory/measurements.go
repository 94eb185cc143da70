package memory

import (
	"bytes"
	"context"
	"errors"
	"iter"

	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// BestAllowed implements records.Measurements.
func (s *Store) BestAllowed(target, workloadDigest, numerics string) (*tilthv1.Record, error) {
	level, err := records.AllowedLevel(numerics)
	if err != nil {
		return nil, err
	}
	of := records.Group{Target: target, Workload: workloadDigest}
	s.mu.RLock()
	defer s.mu.RUnlock()
	g, there := s.groups.get(of.Name())
	if !there {
		return nil, of.NoBest()
	}
	return s.best(g, level)
}

// best returns the best record of a group at a level. The caller must hold the lock.
func (s *Store) best(g *group, level int) (*tilthv1.Record, error) {
	if g.bests[level].Measurement == nil {
		return nil, g.NoBest()
	}
	r, err := g.record(g.bests[level].Key)
	if err != nil {
		return nil, err
	}
	r.Workload = bytes.Clone(s.workloads[g.Workload])
	return &r.Record, nil
}

// BestPage implements records.Measurements.
func (s *Store) BestPage(target, after string, limit, maxBytes int) (best []*tilthv1.Record, next string, err error) {
	from, beyond := records.NamesOf(target)
	s.mu.RLock()
	defer s.mu.RUnlock()
	last, size := "", 0
	for key, g := range s.groups.from(max(from, after)) {
		if key >= beyond {
			break
		}
		if after != "" && key == after {
			continue
		}
		r, err := s.best(g, records.Levels-1)
		if errors.Is(err, records.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, "", err
		}
		if size += proto.Size(r); len(best) > 0 && (len(best) == limit || size > maxBytes) {
			return best, last, nil
		}
		best, last = append(best, r), key
	}
	return best, "", nil
}

// matching returns the groups of a target and a workload; an empty workload matches all.
func (s *Store) matching(target, workload string) (all []*group) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	from, beyond := records.NamesOf(target)
	for key, g := range s.groups.from(from) {
		if key >= beyond {
			break
		}
		if workload == "" || g.Workload == workload {
			all = append(all, g)
		}
	}
	return all
}

// List implements records.Measurements.
func (s *Store) List(ctx context.Context, target, workload string, visit func(*tilthv1.Record) error) error {
	for _, g := range s.matching(target, workload) {
		first := true
		err := s.eachRecord(ctx, g, func(r *stored) error {
			if first {
				first = false
				s.mu.RLock()
				r.Workload = bytes.Clone(s.workloads[g.Workload])
				s.mu.RUnlock()
			}
			return visit(&r.Record)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// eachRecord visits a group's records, oldest first, without holding the lock.
func (s *Store) eachRecord(ctx context.Context, g *group, visit func(r *stored) error) error {
	return eachRow(s, &g.rows, func(key string, row []byte) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r, err := g.decode(records.Key([]byte(key)), row)
		if err != nil {
			return err
		}
		return visit(r)
	})
}

// Known implements records.Measurements.
func (s *Store) Known(target, workloadDigest, numerics, candidate string, limit int) (known records.Known, err error) {
	best, err := s.BestAllowed(target, workloadDigest, numerics)
	if err != nil && !errors.Is(err, records.ErrNotFound) {
		return known, err
	}
	known.Best = best.GetMeasurement()
	of := records.Group{Target: target, Workload: workloadDigest}
	s.mu.RLock()
	defer s.mu.RUnlock()
	g, there := s.groups.get(of.Name())
	if !there {
		return known, nil
	}
	for _, row := range g.rows.backward() {
		if known.Trials == limit {
			break
		}
		known.Trials++
		if err := known.Scan(row, candidate); err != nil {
			return known, err
		}
	}
	return known, nil
}

// group holds the records of a workload on a target.
type group struct {
	records.Group
	rows  sorted[string, []byte] // by records.Key
	bests records.Bests
}

// groupOf returns a group, creating it if necessary. The caller must hold the lock.
func (s *Store) groupOf(of records.Group) *group {
	g, there := s.groups.get(of.Name())
	if !there {
		g = &group{Group: of}
		s.groups.put(of.Name(), g)
		s.size += int64(len(of.Name())) + rowBytes
	}
	return g
}

// stored is a decoded record with its key.
type stored struct {
	tilthv1.Record
	key records.Key
}

// record returns the record of an existing key. The caller must hold the lock.
func (g *group) record(key records.Key) (*stored, error) {
	row, _ := g.rows.get(string(key[:]))
	return g.decode(key, row)
}

// decode decodes a row and adds what the group implies, except the workload. It needs no lock.
func (g *group) decode(key records.Key, row []byte) (*stored, error) {
	r := &stored{key: key}
	err := decode(row, &r.Record)
	g.Complete(&r.Record)
	return r, err
}

// measurements iterates over a group's records, oldest first. The caller must hold the lock.
func (g *group) measurements() iter.Seq2[records.Key, *tilthv1.Measurement] {
	return func(yield func(records.Key, *tilthv1.Measurement) bool) {
		for key, row := range g.rows.all() {
			r, err := g.decode(records.Key([]byte(key)), row)
			if err == nil && !yield(r.key, r.GetMeasurement()) {
				return
			}
		}
	}
}
