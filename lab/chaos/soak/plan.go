package soak

import "time"

// job is a package's tests to be run in a setting.
type job struct {
	binary
	setting
	// seed draws the cases of tests that take some of many.
	seed int64
}

// place is a package in a setting.
type place struct {
	pkg string
	setting
}

func (r result) place() place { return place{r.Package, r.setting} }

// runsOfDraw is how many runs of a package in a setting have the same cases.
const runsOfDraw = 5

// plan chooses the next package to run.
type plan struct {
	jobs []job
	runs int
	// clean counts the runs of a place since its last failure, those that are under way included; begun those of this
	// call.
	clean, begun map[place]int
	// failed counts those of this call that did not pass or came before one that did not.
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

// next is the package and setting with the fewest runs since a failure, so that all come to have the same number
// whenever this ends. What fails waits for its turn like the others, and gets no more runs in a call than it needs
// when nothing fails.
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
		// What settings compile is kept for the others, and for a few runs more; another call draws other cases.
		best.seed = p.base + int64(p.begun[where]/runsOfDraw)
		p.clean[where]++
		p.begun[where]++
	}
	return best, found
}

// turns are the runs that a place has had, but for those before a failure of an earlier call.
func (p *plan) turns(at place) int { return p.clean[at] + p.failed[at] }

// done takes what came of a run.
func (p *plan) done(r result) {
	if at := r.place(); len(r.Failed) > 0 {
		p.failed[at] += p.clean[at]
		p.clean[at] = 0
	}
}
