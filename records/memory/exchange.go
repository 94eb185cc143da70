package memory

import (
	"bytes"

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
