package web

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Bounds on what is kept of how candidates came to be: knobs of one, and different sets of knobs in a job.
const (
	mostKnobs = 64
	mostForms = 64
	// mostNeighbours are the neighbours of the best that a page shows.
	mostNeighbours = 40
)

// forms are the sets of knobs that candidates of a job have: the algorithms of a task differ in them. A candidate
// keeps only its values, since tens of thousands are kept.
type forms [][]string

// knobs are a candidate's values of a form's knobs, counted from 1; 0 = they are not known.
type knobs struct {
	form   int
	values []int32
}

// read reads what a tuner tells of a candidate: knob=value, separated by blanks. What is anything else is not known.
func (f *forms) read(text string) knobs {
	fields := strings.Fields(text)
	if len(fields) == 0 || len(fields) > mostKnobs {
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
		if len(*f) == mostForms {
			return knobs{}
		}
		i = len(*f)
		for k, name := range names {
			names[k] = strings.Clone(name) // the text would be kept else
		}
		*f = append(*f, names)
	}
	return knobs{i + 1, values}
}

// knob is a knob of the best.
type knob struct {
	Name  string
	Value int32
}

// show are knobs with their names.
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
	// Seconds is its latency; 0 on failure, of the class Failed.
	Seconds float64
	Failed  string
}

// neighbours are the trials of a task one knob away from one with such knobs, knob by knob, the fastest first.
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
			n.Failed = errorText(p.class)
		}
		out = append(out, n)
	}
	slices.SortStableFunc(out, func(a, b neighbour) int {
		return cmp.Or(strings.Compare(a.Knob, b.Knob), cmp.Compare(a.rank(), b.rank()))
	})
	return out[:min(len(out), mostNeighbours)]
}

// rank puts failures last.
func (n neighbour) rank() float64 {
	if n.Seconds == 0 {
		return 1e9
	}
	return n.Seconds
}

// differs returns the one knob in which two candidates differ, if it is one.
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

// knobsOf are those of a trial of a task, which its trial number and digest name.
func (f *follow) knobsOf(task int, digest string) knobs {
	for _, p := range slices.Backward(f.points) {
		if int(p.task) == task && p.digest == digest && p.knobs.form != 0 {
			return p.knobs
		}
	}
	return knobs{}
}
