package memory

import (
	"cmp"
	"context"

	"github.com/tilth-dev/tilth/records"
)

// Prune implements records.Measurements.
func (s *Store) Prune(ctx context.Context, opts records.PruneOptions) (removed, kept uint64, err error) {
	for _, g := range s.matching(cmp.Or(opts.Target, records.EveryTarget), opts.Workload) {
		outlines, err := s.outlines(ctx, g)
		if err != nil {
			return removed, kept, err
		}
		gone, stayed, err := opts.Remove(outlines, func(keys []records.Key) (spared uint64, err error) {
			if ctx.Err() != nil {
				return 0, context.Cause(ctx)
			}
			return s.removeRecords(g, keys)
		})
		removed, kept = removed+gone, kept+stayed
		if err != nil {
			return removed, kept, err
		}
	}
	return removed, kept, nil
}

// outlines returns the outlines of a group's records, oldest first.
func (s *Store) outlines(ctx context.Context, g *group) ([]records.Outline, error) {
	var o records.Outlines
	err := s.eachRecord(ctx, g, func(r *stored) error {
		o.Add(r.key, &r.Record)
		return nil
	})
	s.mu.RLock()
	defer s.mu.RUnlock()
	o.Need(func(job string) bool {
		_, open := s.open.get(job)
		return open
	}, g.bests.Has)
	return o.All, err
}

// removeRecords removes records of a group. It spares and counts those that have become the best in the meantime.
func (s *Store) removeRecords(g *group, keys []records.Key) (spared uint64, err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.write(nil); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		if g.bests.Has(key) {
			spared++
		} else {
			s.remove(&g.rows, string(key[:]))
		}
	}
	return spared, nil
}
