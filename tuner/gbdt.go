package tuner

import (
	"cmp"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/tuner/transfer"
)

// learner implements the search gbdt. From thousands of points, drawn at random, bred from the fastest trials or taken
// from similar tasks, the analytic cost drafts hundreds. Boosted trees, trained on all tasks, predict their times, and
// a Gaussian process over the knobs corrects the predictions by this task's own trials and estimates their
// uncertainty. The most promising points are proposed, spread so that no two of them would yield the same information.
//
// Its proposals are a function of the seed, the job's knowledge and the trials in their order.
type learner struct {
	*pool
	options Options
	view    *transfer.View
	// trials holds the successful trials in order of arrival; fastest holds the same trials, fastest first.
	trials, fastest []measured
	// failed holds the points of failed trials.
	failed []searchspace.Point
	// confirming holds points that were fast in earlier jobs, or with another compiler, and are measured again first.
	confirming []searchspace.Point
	// recalled holds points close to earlier fast ones that the current rules of the space no longer contain.
	recalled []searchspace.Point
	// draft holds the result of drafted once the default schedule was proposed.
	draft []searchspace.Point
	// made caches the points evaluated so far, by key.
	made map[string]*prospect
	// begun is set once the earlier measurements were read.
	begun   bool
	ranking ranking
}

// confirmed is the number of fastest earlier trials of the same workload that are measured again.
const confirmed = 3

// maturity is the number of trials after which a search is mature.
const maturity = 16

// rememberedTrials bounds the number of earlier trials of the same workload to learn from.
const rememberedTrials = 128

// Propose implements Search.
func (g *learner) Propose(n int) []Candidate {
	g.reseed()
	g.begin()
	list := g.fill(g.start(n), n, g.confirming)
	list = g.tryImported(list, n)
	if len(list) < n {
		list = g.pick(list, n)
	}
	return g.fillRandom(list, n)
}

// tryImported adds the imported point that is predicted to be the fastest, once. Another compiler chose these
// points, so the others compete in the population.
func (g *learner) tryImported(list []Candidate, n int) []Candidate {
	var fresh []*prospect
	for _, p := range g.options.Imported {
		m := g.prospect(p)
		if m == nil {
			continue
		}
		if d := m.candidate.Digest; g.seen[d] || g.skipped[d] {
			return list
		}
		fresh = append(fresh, m)
	}
	if len(fresh) == 0 || len(list) >= n {
		return list
	}
	return g.cheapest(list, len(list)+1, fresh, g.times(fresh))
}

// begin reads the earlier measurements.
func (g *learner) begin() {
	if g.begun {
		return
	}
	g.begun = true
	if g.options.NoTransfer {
		return
	}
	known := g.view.Known()
	for _, t := range known[:min(rememberedTrials, len(known))] {
		p, ok := g.space.Parse(t.Origin)
		if !ok {
			continue
		}
		m := g.prospect(p)
		switch {
		case m == nil:
		case len(g.confirming) < confirmed:
			g.confirming = append(g.confirming, p)
		case m.candidate.Digest == t.Digest:
			g.skipped[t.Digest] = true
			g.note(measured{p, t.LatencySeconds, t.Digest})
		default: // the rules changed since: the point makes another schedule now
			g.recalled = append(g.recalled, p)
		}
	}
	if len(known) > 0 {
		return
	}
	for _, t := range g.view.Former() {
		if p, ok := g.space.Parse(t.Origin); ok && len(g.confirming) < confirmed && g.prospect(p) != nil {
			g.confirming = append(g.confirming, p)
		}
	}
}

// Observe implements Search.
func (g *learner) Observe(t Trial) {
	g.begin()
	g.observe(t)
	point, ok := g.space.Parse(t.Origin)
	if !ok {
		return
	}
	if t.Failed {
		g.failed = append(g.failed, point)
	}
	m := g.prospect(point)
	if m == nil || t.LatencySeconds <= 0 {
		return
	}
	g.ranking.measured(t)
	if !m.own {
		g.view.Learn(m.row, t.LatencySeconds)
	}
	g.note(measured{point, t.LatencySeconds, t.Digest})
}

// mature reports whether there are enough trials to search near the fastest of them.
func (g *learner) mature() bool { return len(g.trials) >= maturity }

func (g *learner) note(m measured) {
	g.trials = append(g.trials, m)
	g.fastest = insert(g.fastest, m)
}

// prospect is a point that may be proposed.
type prospect struct {
	candidate Candidate
	row       transfer.Row
	// at holds the coordinates of the point.
	at []float64
	// own is set for a hand-written kernel, whose features are not informative.
	own bool
}

// prospect evaluates a point. It returns nil if the point does not apply.
func (g *learner) prospect(p searchspace.Point) *prospect {
	key := p.Key()
	if m, known := g.made[key]; known {
		return m
	}
	var m *prospect
	if s, err := g.space.Apply(p); err == nil {
		m = &prospect{candidate: newCandidate(g.space, p, s), row: transfer.Describe(g.space, p, s), at: coordinates(g.space, p), own: s.Own != nil}
	}
	g.made[key] = m
	return m
}

// coordinates returns the choices of a point, each scaled to 0..1.
func coordinates(s *searchspace.Space, p searchspace.Point) []float64 {
	x := make([]float64, len(p))
	for k, v := range p {
		if n := len(s.Knobs[k].Values); n > 1 {
			x[k] = float64(v) / float64(n-1)
		}
	}
	return x
}

// measured is a successful trial.
type measured struct {
	point   searchspace.Point
	latency float64
	digest  string
}

// log returns the base-2 logarithm of the trial's nanoseconds.
func (m measured) log() float64 { return math.Log2(m.latency * 1e9) }

// insert adds a trial to a list ordered by latency.
func insert(list []measured, m measured) []measured {
	at, _ := slices.BinarySearchFunc(list, m, func(a, b measured) int {
		return cmp.Or(cmp.Compare(a.latency, b.latency), cmp.Compare(a.digest, b.digest))
	})
	return slices.Insert(list, at, m)
}

// ranking compares the predicted order of a batch's candidates with the order of their latencies. Batches
// that another tuner proposed are ignored because their predictions are unknown.
type ranking struct {
	tell func(right, wrong int)
	// batch numbers the picks. predictions holds the candidates not measured yet.
	batch       int
	predictions map[string]prediction
	// known holds the measured candidates of the latest batches, by batch number.
	known map[int][]ranked
}

// prediction is the predicted time of a candidate, on the model's scale, with its batch.
type prediction struct {
	batch int
	time  float64
}

// ranked is a candidate that was both predicted and measured.
type ranked struct{ predicted, seconds float64 }

// significantRatio is the ratio from which the order of two latencies is significant.
const significantRatio = 1.05

// rememberedBatches bounds the batches that may still be measured. A tuner has few in flight.
const rememberedBatches = 16

func newRanking(tell func(right, wrong int)) ranking {
	return ranking{tell: tell, predictions: map[string]prediction{}, known: map[int][]ranked{}}
}

// begin starts a batch and drops the oldest.
func (r *ranking) begin() {
	r.batch++
	old := r.batch - rememberedBatches
	delete(r.known, old)
	for digest, p := range r.predictions {
		if p.batch <= old {
			delete(r.predictions, digest)
		}
	}
}

// predict records the predicted time of a picked candidate.
func (r *ranking) predict(digest string, time float64) {
	if r.tell != nil {
		r.predictions[digest] = prediction{r.batch, time}
	}
}

// measured compares a candidate with those of its batch that were measured earlier.
func (r *ranking) measured(t Trial) {
	p, ok := r.predictions[t.Digest]
	if !ok {
		return
	}
	delete(r.predictions, t.Digest)
	right, wrong := 0, 0
	for _, other := range r.known[p.batch] {
		if max(t.LatencySeconds, other.seconds) <= significantRatio*min(t.LatencySeconds, other.seconds) {
			continue
		}
		if (p.time < other.predicted) == (t.LatencySeconds < other.seconds) {
			right++
		} else {
			wrong++
		}
	}
	r.known[p.batch] = append(r.known[p.batch], ranked{p.time, t.LatencySeconds})
	r.tell(right, wrong)
}
