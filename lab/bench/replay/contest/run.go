package contest

import (
	"math/rand/v2"

	"github.com/tilth-dev/tilth/tuner"
	"github.com/tilth-dev/tilth/tuner/knowledge"
)

// run is one search on one device.
type run struct {
	// digests lists the candidates in order of proposal.
	digests []string
	trials  []knowledge.Trial
	// share holds, after each trial, the relative speed of the schedule that would then be chosen.
	share []float64
	// code is the mean instruction count of the candidates.
	code float64
}

// Batches bounds the number of candidates per batch. A batch has as many candidates as were already tried, within
// these bounds.
type Batches struct{ Fewest, Most int }

func (b Batches) next(tried int) int { return min(max(b.Fewest, tried), b.Most) }

// search runs one search for at most budget trials, or fewer in a small space. noisy replays single samples;
// the chosen candidate is still judged by its latency.
func (d *device) search(o tuner.Options, job *knowledge.Job, budget int, b Batches, noisy bool) (*run, error) {
	s, err := tuner.NewSearch(d.space, job, o)
	if err != nil {
		return nil, err
	}
	var rng *rand.Rand
	if noisy {
		rng = rand.New(rand.NewPCG(o.Seed, 5))
	}
	r, least, share := &run{}, 0.0, 0.0
	for len(r.digests) < budget {
		list := s.Propose(min(b.next(len(r.digests)), budget-len(r.digests)))
		if len(list) == 0 {
			break
		}
		for _, c := range list {
			t := d.measure(c, rng)
			if !t.Failed && (least == 0 || t.LatencySeconds < least) {
				least, share = t.LatencySeconds, d.best/d.points[c.Digest].LatencySeconds()
			}
			r.code += d.code(c)
			s.Observe(t)
			r.digests, r.share = append(r.digests, c.Digest), append(r.share, share)
			r.trials = append(r.trials, knowledge.Trial{Origin: c.Origin, Digest: c.Digest, LatencySeconds: t.LatencySeconds})
		}
	}
	r.code /= float64(max(1, len(r.digests)))
	return r, nil
}

// trialsTo returns the number of trials to reach a share of the best. ok is false if the run missed it.
func (r *run) trialsTo(share float64) (int, bool) {
	for k, v := range r.share {
		if v >= share {
			return k + 1, true
		}
	}
	return len(r.share), false
}

// after returns the share reached after a number of trials.
func (r *run) after(trials int) float64 {
	if len(r.share) == 0 {
		return 0
	}
	return r.share[min(trials, len(r.share))-1]
}
