package tuner

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/tuner/transfer"
)

// Candidate is a proposed schedule.
type Candidate struct {
	Point searchspace.Point
	// Digest identifies the trace, Trace replays to the schedule, and Origin is the point as text.
	Digest string
	Trace  []byte
	Origin string
	// Numerics is the lowest level that allows the schedule.
	Numerics schedule.Numerics
	// Multiplications is the number of multiplications relative to direct sums.
	Multiplications float64
	// Algorithms names the schedule's algorithms other than direct sums.
	Algorithms []string
	// PredictedSeconds is the latency that the search expects, or 0.
	PredictedSeconds float64
}

// Trial is the measurement or the failure of a candidate.
type Trial struct {
	Digest string
	Origin string
	// LatencySeconds is the median of the samples; 0 for a failed trial.
	LatencySeconds float64
	// Failed is set if the candidate itself is bad.
	Failed bool
}

// Search proposes the candidates of one task. Implementations are deterministic: the same seed, proposals and
// trials give the same candidates. They are not safe for concurrent use.
type Search interface {
	// Propose returns up to n candidates that were never proposed before. It returns none if the search is exhausted.
	Propose(n int) []Candidate
	// Observe records the result of a candidate. Results may come in any order. Trials of an earlier run of
	// the same search are observed, too, and count as proposed.
	Observe(Trial)
}

var algorithms = map[string]func(*pool, *transfer.Job, Options) Search{
	"random": func(p *pool, _ *transfer.Job, _ Options) Search { return &random{pool: p} },
	"grid":   func(p *pool, _ *transfer.Job, _ Options) Search { return &grid{pool: p} },
	"ga":     func(p *pool, _ *transfer.Job, o Options) Search { return newGenetic(p, o) },
	"gbdt": func(p *pool, j *transfer.Job, o Options) Search {
		return &learner{pool: p, options: o, view: j.View(p.space), made: map[string]*prospect{}, ranking: newRanking(o.Ranked)}
	},
}

// Best is the default algorithm.
const Best = "gbdt"

// Names returns the names of the search algorithms, sorted.
func Names() []string { return slices.Sorted(maps.Keys(algorithms)) }

// NewSearch returns a search over a space. The searches of one job share its knowledge; nil stands for a job
// without any. It returns an error if the algorithm does not exist.
func NewSearch(s *searchspace.Space, job *transfer.Job, o Options) (Search, error) {
	make, ok := algorithms[cmp.Or(o.Algorithm, Best)]
	if !ok {
		return nil, fmt.Errorf("tuner: unknown search algorithm %q: want one of %v", o.Algorithm, Names())
	}
	if job == nil {
		job = transfer.NewJob(nil)
	}
	return make(newPool(s, o.Seed), job, o), nil
}

// pool is the part that all searches share: the space and the candidates proposed from it.
type pool struct {
	space *searchspace.Space
	seed  uint64
	rng   *rand.Rand
	seen  map[string]bool
	// skipped holds candidates that were measured before the search and need no new measurement.
	skipped map[string]bool
	// misses counts consecutive draws without a new candidate.
	misses int
}

func newPool(s *searchspace.Space, seed uint64) *pool {
	return &pool{space: s, seed: seed, rng: rand.New(rand.NewPCG(seed, 0)), seen: map[string]bool{}, skipped: map[string]bool{}}
}

// maxMisses is the number of consecutive draws without a new candidate that ends a search.
const maxMisses = 2000

// reseed makes the following draws a function of the seed and the number of candidates seen, so that a search
// that is resumed from its trials, in order, continues like an uninterrupted one.
func (p *pool) reseed() {
	p.rng = rand.New(rand.NewPCG(p.seed, uint64(len(p.seen))))
}

// take turns a point into a candidate. ok is false if it does not apply or was seen before.
func (p *pool) take(point searchspace.Point) (c Candidate, ok bool) {
	s, err := p.space.Apply(point)
	if err != nil {
		p.misses++
		return Candidate{}, false
	}
	return p.accept(newCandidate(p.space, point, s))
}

// newCandidate returns the candidate of a point whose schedule is s.
func newCandidate(in *searchspace.Space, point searchspace.Point, s *schedule.Schedule) Candidate {
	c := Candidate{Point: point, Trace: s.Trace(), Origin: in.Format(point), Numerics: s.Numerics(), Multiplications: s.Multiplications(), Algorithms: s.Algorithms()}
	c.Digest = schedule.Digest(c.Trace)
	return c
}

// fill takes points in order until the list has n candidates.
func (p *pool) fill(list []Candidate, n int, points []searchspace.Point) []Candidate {
	for _, point := range points {
		if len(list) >= n {
			break
		}
		if c, ok := p.take(point); ok {
			list = append(list, c)
		}
	}
	return list
}

// fillRandom draws points until the list has n candidates. Populations leave gaps in small spaces.
func (p *pool) fillRandom(list []Candidate, n int) []Candidate {
	for len(list) < n && p.misses < maxMisses {
		point, ok := p.space.Random(p.rng)
		if !ok {
			break
		}
		list = p.fill(list, len(list)+1, []searchspace.Point{point})
	}
	return list
}

// accept marks a candidate as proposed. ok is false if it already was.
func (p *pool) accept(c Candidate) (_ Candidate, ok bool) {
	if p.seen[c.Digest] || p.skipped[c.Digest] {
		p.misses++
		return Candidate{}, false
	}
	p.seen[c.Digest] = true
	p.misses = 0
	return c, true
}

// start proposes the default schedule as the first candidate, so that every search measures the gain of
// tuning. Hand-written kernels follow, up to half of the n candidates, at the latest in the second proposal.
func (p *pool) start(n int) []Candidate {
	if len(p.seen) > 1 {
		return nil
	}
	var list []Candidate
	if len(p.seen) == 0 {
		list = p.fill(nil, 1, []searchspace.Point{p.space.Default()})
	}
	if kernels := p.space.Owns(); kernels > 0 {
		list = p.fill(list, n, p.space.InitialOwnPoints(p.rng, max(1, n/2/kernels)))
	}
	return list
}

func (p *pool) observe(t Trial) { p.seen[t.Digest] = true }

// Options configures a search. Each switch disables a part of gbdt, so that its contribution can be measured;
// the zero value enables everything. Of the switches, the other algorithms only support NoSeeds (in ga).
type Options struct {
	// Algorithm is one of Names; empty means gbdt.
	Algorithm string
	// Seed determines all random draws.
	Seed uint64
	// NoTransfer ignores measurements from before the job.
	NoTransfer bool
	// NoModel ranks by the analytic cost alone.
	NoModel bool
	// NoDraft ranks points as drawn, without selecting those with the lowest analytic cost.
	NoDraft bool
	// NoSeeds leaves out the hand-written points of the space.
	NoSeeds bool
	// Imported holds points that other compilers chose. One of them is tried before the search's own choices.
	Imported []searchspace.Point
	// Ranked, if set, is called for each measured candidate. Of the candidates of its batch that were measured earlier
	// and are more than 5 % faster or slower, the model had ranked right correctly and wrong wrongly.
	Ranked func(right, wrong int)
}

// random draws legal points uniformly. It is the baseline for all other searches.
type random struct{ *pool }

// Propose implements Search.
func (r *random) Propose(n int) []Candidate {
	r.reseed()
	return r.fillRandom(r.start(n), n)
}

// Observe implements Search.
func (r *random) Observe(t Trial) { r.observe(t) }
