package soak

import "time"

// job is a run of a package's tests in a setting.
type job struct {
	binary
	setting
	// seed draws the cases of randomised tests.
	seed int64
}

// place is a package and a setting.
type place struct {
	pkg string
	setting
}

func (r result) place() place { return place{r.Package, r.setting} }

// runsOfDraw is the number of runs in a place that use the same seed.
const runsOfDraw = 5

// plan chooses the next package to run.
type plan struct {
	jobs []job
	runs int
	// clean counts the runs of a place since its last failure, including running ones. begun counts those of this
	// call.
	clean, begun map[place]int
	// failed counts this call's failed runs and the clean ones before them.
	failed map[place]int
	base   int64
}

func newPlan(o options, binaries map[bool][]binary, earlier map[place]*entry) *plan {
	p := &plan{runs: o.runs, clean: map[place]int{}, begun: map[place]int{}, failed: map[place]int{}, base: time.Now().UnixNano()}
	for _, s := range o.settings {
		for _, b := range binaries[s.Race] {
			p.jobs = append(p.jobs, job{binary: b, setting: s})
		}
	}
	for at, e := range earlier {
		p.clean[at] = e.Clean
	}
	return p
}

// next returns the package and setting with the fewest runs since a failure, so that all have similar numbers at any
// time. Failing packages wait for their turn like others, and get no more runs per call than others.
func (p *plan) next() (job, bool) {
	var best job
	var where place
	found := false
	for _, j := range p.jobs {
		at := place{j.pkg, j.setting}
		if p.clean[at] >= p.runs || p.begun[at] >= p.runs || found && p.turns(at) >= p.turns(where) {
			continue
		}
		best, where, found = j, at, true
	}
	if found {
		// Settings share the compiled code of a seed, and so do a few more runs. Another call draws other cases.
		best.seed = p.base + int64(p.begun[where]/runsOfDraw)
		p.clean[where]++
		p.begun[where]++
	}
	return best, found
}

// turns returns the runs of a place, without those before a failure in an earlier call.
func (p *plan) turns(at place) int { return p.clean[at] + p.failed[at] }

// done records the result of a run.
func (p *plan) done(r result) {
	if at := r.place(); len(r.Failed) > 0 {
		p.failed[at] += p.clean[at]
		p.clean[at] = 0
	}
}
