package web

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/tilth-dev/tilth/internal/humanize"
)

// factsOf compares properties of two packages.
func factsOf(both [2]*manifest) (facts []comparedFact) {
	add := func(name string, of func(m *manifest) string) {
		if f := (comparedFact{Name: name, Of: [2]string{of(both[0]), of(both[1])}}); f.Of != [2]string{} {
			facts = append(facts, f)
		}
	}
	add("model", func(m *manifest) string { return m.Model })
	add("processor", func(m *manifest) string { return word(m.Target.CPU) })
	add("toolchain", func(m *manifest) string { return word(m.Target.Toolchain) })
	add("inputs", func(m *manifest) string { return strconv.Itoa(int(m.Inputs)) })
	add("outputs", func(m *manifest) string { return strconv.Itoa(int(m.Outputs)) })
	add("kernels", func(m *manifest) string { return strconv.Itoa(len(m.Tasks)) })
	add("calls of kernels", func(m *manifest) string { return strconv.Itoa(int(m.Calls)) })
	add("memory for values", func(m *manifest) string { return humanize.Bytes(m.ArenaBytes) })
	add("weights", func(m *manifest) string { return humanize.Bytes(m.WeightsBytes) })
	add("weights in integers", func(m *manifest) string {
		if m.Weights == nil {
			return ""
		}
		return fmt.Sprintf("%d of %d as %s", m.Weights.Quantised, m.Weights.All, m.Weights.Type)
	})
	listed := map[string]bool{}
	for _, m := range both { // members of the first package first
		for _, member := range m.Members {
			if !listed[member.Name] {
				listed[member.Name] = true
				add(member.Name, func(m *manifest) string {
					for _, other := range m.Members { // of members with one name, the first counts
						if other.Name == member.Name {
							return humanize.Bytes(other.SizeBytes)
						}
					}
					return ""
				})
			}
		}
	}
	return facts
}

// word returns a JSON string, or "" for other values.
func word(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return ""
	}
	return text
}

// kernelsOf matches the kernels of two packages by workload, those of the first package first.
func kernelsOf(both [2]*manifest) (rows []comparedKernel) {
	at := map[string]int{}
	for side, m := range both {
		for i := range m.Tasks {
			task := &m.Tasks[i]
			k, is := at[task.Workload]
			if !is || rows[k].Of[side] != nil {
				k = len(rows)
				at[task.Workload] = k
				rows = append(rows, comparedKernel{Name: task.Name})
			}
			task.Trace = shorten([]byte(task.Trace))
			rows[k].Of[side] = task
		}
	}
	for k := range rows {
		a, b := rows[k].Of[0], rows[k].Of[1]
		rows[k].Same = a != nil && b != nil && a.Trace == b.Trace
	}
	return rows
}
