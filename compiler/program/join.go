package program

import (
	"fmt"
	"slices"
)

// Join merges several programs into one; they share only tasks of equal workloads. Input or output NAME of
// programs[k] is called JoinedName(k, NAME).
func Join(name string, programs []*Program) *Program {
	j := &joiner{joined: &Program{Name: name}, tasks: map[string]int{}}
	for k, p := range programs {
		j.add(k, p)
	}
	return j.joined
}

// JoinedName returns the name in a joined program of an input or output of the k-th program.
func JoinedName(k int, name string) string { return fmt.Sprintf("%d/%s", k, name) }

type joiner struct {
	joined *Program
	// tasks maps workload digests to the joined program's tasks.
	tasks map[string]int
}

func (j *joiner) add(k int, p *Program) {
	first, extents, loops, calls := len(j.joined.Values), len(j.joined.Extents), len(j.joined.Loops), len(j.joined.Calls)
	for _, v := range p.Values {
		v.Name = JoinedName(k, v.Name)
		if v.Alias >= 0 {
			v.Alias += first
			if v.Moves != nil {
				v.Moves = append(make([]int64, extents), v.Moves...)
			}
			if v.Turns != nil {
				v.Turns = append(make([]int64, loops), v.Turns...)
			}
			if v.Lengths != nil {
				v.Lengths = append(make([]int64, loops), v.Lengths...)
			}
		}
		j.joined.Values = append(j.joined.Values, v)
	}
	shifted := func(values []int) []int {
		list := make([]int, len(values))
		for i, v := range values {
			list[i] = v + first
		}
		return list
	}
	for _, o := range p.Open {
		j.joined.Open = append(j.joined.Open, Open{Output: o.Output + len(j.joined.Outputs), Axis: o.Axis, Count: o.Count + first})
	}
	for _, r := range p.Required {
		j.joined.Required = append(j.joined.Required, Requirement{Value: r.Value + first, Why: r.Why})
	}
	for _, c := range p.Checks {
		c.Input += len(j.joined.Inputs)
		c.First, c.Extent, c.Axes = c.First.shifted(extents), c.Extent.shifted(extents), slices.Clone(c.Axes)
		for i := range c.Axes {
			c.Axes[i].Count = c.Axes[i].Count.shifted(extents)
		}
		j.joined.Checks = append(j.joined.Checks, c)
	}
	j.joined.Inputs = append(j.joined.Inputs, shifted(p.Inputs)...)
	j.joined.Outputs = append(j.joined.Outputs, shifted(p.Outputs)...)
	for _, v := range p.Varying {
		v.Value, v.Extent = v.Value+first, v.Extent+extents
		j.joined.Varying = append(j.joined.Varying, v)
	}
	for _, e := range p.Extents {
		e.Name, e.Value = JoinedName(k, e.Name), e.Value+first
		j.joined.Extents = append(j.joined.Extents, e)
	}
	for _, l := range p.Loops {
		l.First, l.End, l.Counter, l.Iterations = l.First+calls, l.End+calls, l.Counter+first, l.Iterations+first
		if len(p.Extents) > 0 {
			l.Count = "" // the extents have other names
		}
		l.States = slices.Clone(l.States)
		for i, s := range l.States {
			l.States[i] = State{s.Init + first, s.Value + first, s.Next + first}
		}
		j.joined.Loops = append(j.joined.Loops, l)
	}
	numbers := make([]int, len(p.Tasks))
	for i, t := range p.Tasks {
		numbers[i] = j.task(t)
	}
	for _, c := range p.Calls {
		c.Task, c.Args = numbers[c.Task], shifted(c.Args)
		variants := make([]Variant, len(c.Variants))
		for i, v := range c.Variants {
			variants[i].Task = numbers[v.Task]
			for _, limit := range v.Caps {
				variants[i].Caps = append(variants[i].Caps, Cap{Extent: limit.Extent + extents, Max: limit.Max})
			}
		}
		c.Variants = variants
		c.If = slices.Clone(c.If)
		for i := range c.If {
			c.If[i].Value += first
		}
		j.joined.Calls = append(j.joined.Calls, c)
	}
}

func (j *joiner) task(t Task) int {
	digest := t.Workload.Digest()
	k, ok := j.tasks[digest]
	if !ok {
		k = len(j.joined.Tasks)
		j.tasks[digest] = k
		j.joined.Tasks = append(j.joined.Tasks, t)
		return k
	}
	made := &j.joined.Tasks[k]
	if made.Executions != 0 || t.Executions != 0 {
		made.Executions = made.Runs() + t.Runs()
	}
	made.Count += t.Count
	made.Untuned = made.Untuned && t.Untuned
	return k
}
