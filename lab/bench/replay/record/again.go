package record

import (
	"context"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/bench/replay"
)

// again remeasures the fastest candidates of a set in turns, so that neither a lucky sample nor a disturbance decides
// which is best. The new samples replace the first ones.
func (r *Recorder) again(ctx context.Context, m *measurer, set *replay.Set) error {
	s, err := set.Space()
	if err != nil {
		return err
	}
	at := map[string]int{}
	for k, p := range set.Points {
		at[p.Origin] = k
	}
	var list []replay.Candidate
	for _, p := range fastest(set.Points, r.Finalists) {
		point, ok := s.Parse(p.Origin)
		if !ok {
			continue
		}
		sch, err := s.Apply(point)
		if err != nil {
			continue
		}
		list = append(list, replay.Candidate{Origin: p.Origin, Digest: schedule.Digest(sch.Trace()), Trace: sch.Trace()})
	}
	if len(list) == 0 || r.Rounds == 0 {
		return nil
	}
	points, err := m.turns(ctx, list, r.Rounds, &replay.Point{})
	if err != nil {
		return err
	}
	for _, p := range points {
		set.Points[at[p.Origin]] = p
	}
	return nil
}
