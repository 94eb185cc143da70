package accuracy

import (
	"slices"
	"strings"
)

// heavy lists the operators that determine the kind of a fused task.
var heavy = []string{"conv2d", "conv3d", "convtranspose", "matmul", "dense", "attention", "maxpool", "avgpool", "globalavgpool", "lstm_hidden", "lstm_cell"}

// Kind classifies a task by its name: its main operator, and for convolutions whether they are pointwise or
// depthwise.
func Kind(name string) string {
	operators, rest, _ := strings.Cut(name, " ")
	list := strings.Split(operators, "+")
	at := slices.IndexFunc(list, func(o string) bool { return slices.Contains(heavy, o) })
	kind := list[max(at, 0)]
	switch {
	case strings.Contains(rest, "depthwise"):
		return kind + " depthwise"
	case kind == "conv2d" && strings.Contains(rest, "k1x1"):
		return kind + " 1x1"
	}
	return kind
}

// ByKind returns a ranker's means over the tasks of each kind, in alphabetical order.
func ByKind(results []Result, ranker string) []Result {
	var kinds []string
	for _, r := range results {
		kinds = append(kinds, Kind(r.Task))
	}
	slices.Sort(kinds)
	var list []Result
	for _, kind := range slices.Compact(kinds) {
		own := slices.DeleteFunc(slices.Clone(results), func(r Result) bool { return r.Ranker != ranker || Kind(r.Task) != kind })
		mean := Mean(own, ranker)
		mean.Task = kind
		list = append(list, mean)
	}
	return list
}
