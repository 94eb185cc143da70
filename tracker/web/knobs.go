package web

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/internal/wire"
)

// Bounds on stored knobs: per candidate, and distinct sets of knob names per job.
const (
	maxKnobs = 64
	maxForms = 64
	// maxNeighbours bounds the neighbours that a page shows.
	maxNeighbours = 40
)

// forms are the distinct lists of knob names in a job; they differ by algorithm. Candidates store only values, since
// tens of thousands of them are kept.
type forms [][]string

// knobs holds a candidate's values for a form, numbered from 1; form 0 means unknown.
type knobs struct {
	form   int
	values []int32
}

// read parses a candidate's origin, knob=value pairs separated by spaces. Any other text yields unknown knobs.
func (f *forms) read(text string) knobs {
	fields := strings.Fields(text)
	if len(fields) == 0 || len(fields) > maxKnobs {
		return knobs{}
	}
	names, values := make([]string, len(fields)), make([]int32, len(fields))
	for i, field := range fields {
		name, number, is := strings.Cut(field, "=")
		v, err := strconv.ParseInt(number, 10, 32)
		if !is || err != nil {
			return knobs{}
		}
		names[i], values[i] = name, int32(v)
	}
	i := slices.IndexFunc(*f, func(known []string) bool { return slices.Equal(known, names) })
	if i < 0 {
		if len(*f) == maxForms {
			return knobs{}
		}
		i = len(*f)
		for k, name := range names {
			names[k] = strings.Clone(name) // do not retain the whole text
		}
		*f = append(*f, names)
	}
	return knobs{i + 1, values}
}

// knob is a knob of the best candidate.
type knob struct {
	Name  string
	Value int32
}

// show pairs values with their names.
func (f forms) show(k knobs) (out []knob) {
	for i, v := range k.values {
		out = append(out, knob{f[k.form-1][i], v})
	}
	return out
}

// neighbour is a trial that differs from the best in one knob.
type neighbour struct {
	Trial    uint32
	Knob     string
	From, To int32
	// Seconds is its latency; 0 on failure, with the error class in Failed.
	Seconds float64
	Failed  string
}

// neighbours returns the task's trials that differ from of in one knob, by knob, fastest first.
func (f *follow) neighbours(task int, of knobs) (out []neighbour) {
	if of.form == 0 {
		return nil
	}
	for _, p := range f.points {
		k, is := differs(of, p.knobs)
		if int(p.task) != task || !is {
			continue
		}
		n := neighbour{Trial: p.trial, Knob: f.forms[of.form-1][k], From: of.values[k], To: p.knobs.values[k], Seconds: p.latency}
		if p.latency == 0 {
			n.Failed = wire.ErrorClass(p.class)
		}
		out = append(out, n)
	}
	slices.SortStableFunc(out, func(a, b neighbour) int {
		return cmp.Or(strings.Compare(a.Knob, b.Knob), strings.Compare(a.Failed, b.Failed), cmp.Compare(a.Seconds, b.Seconds))
	})
	return out[:min(len(out), maxNeighbours)]
}

// differs returns the index of the only differing knob; is reports whether there is exactly one.
func differs(a, b knobs) (at int, is bool) {
	if a.form != b.form {
		return 0, false
	}
	n := 0
	for i := range a.values {
		if a.values[i] != b.values[i] {
			at = i
			n++
		}
	}
	return at, n == 1
}

// knobsOf returns the knobs of a trial, found by task and digest.
func (f *follow) knobsOf(task int, digest string) knobs {
	for _, p := range slices.Backward(f.points) {
		if int(p.task) == task && p.digest == digest && p.knobs.form != 0 {
			return p.knobs
		}
	}
	return knobs{}
}
