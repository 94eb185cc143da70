package memory

import (
	"context"
	"slices"

	"github.com/tilth-dev/tilth/records"
)

// removedAtOnce bounds how long a prune holds up others.
const removedAtOnce = 1000

// Prune implements records.Measurements.
func (s *Store) Prune(ctx context.Context, opts records.PruneOptions) (removed, kept uint64, err error) {
	for _, g := range s.matching(opts.Target, opts.Workload) {
		outlines, err := s.outlines(ctx, g)
		if err != nil {
			return removed, kept, err
		}
		superfluous := opts.Superfluous(outlines)
		kept += uint64(len(outlines) - len(superfluous))
		for keys := range slices.Chunk(superfluous, removedAtOnce) {
			if ctx.Err() != nil {
				return removed, kept, context.Cause(ctx)
			}
			gone, err := s.removeRecords(g, keys)
			if err != nil {
				return removed, kept, err
			}
			removed += gone
			kept += uint64(len(keys)) - gone
		}
	}
	return removed, kept, nil
}

// outlines returns those of a group's records, oldest first.
func (s *Store) outlines(ctx context.Context, g *group) (all []records.Outline, err error) {
	var jobs []string
	places := map[string]int32{}
	err = s.eachRecord(ctx, g, func(r *stored) error {
		o := records.OutlineOf(r.key, r.GetMeasurement())
		place, known := places[r.GetJobId()]
		if !known {
			place = int32(len(jobs))
			jobs, places[r.GetJobId()] = append(jobs, r.GetJobId()), place
		}
		o.Job = place
		all = append(all, o)
		return nil
	})
	s.mu.RLock()
	defer s.mu.RUnlock()
	for i := range all {
		_, open := s.open.get(jobs[all[i].Job])
		all[i].Needed = open || g.bests.Has(all[i].Key)
	}
	return all, err
}

// removeRecords removes records of a group, but for those that have become the best meanwhile.
func (s *Store) removeRecords(g *group, keys []records.Key) (removed uint64, err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.write(nil); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		if !g.bests.Has(key) {
			s.remove(&g.rows, string(key[:]))
			removed++
		}
	}
	return removed, nil
}
