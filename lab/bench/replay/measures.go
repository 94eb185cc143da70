package replay

import (
	"cmp"
	"math"
	"slices"
)

// Share is the fraction of pairs of candidates in the right order.
type Share struct {
	// Pairs is the number of pairs.
	Pairs int `json:"pairs"`
	// Right is the fraction in the right order, or 0 without pairs.
	Right float64 `json:"right"`
}

// Pairwise returns the share of pairs of candidates whose scores are in the order of their throughputs, among
// the pairs for which apart, given the faster one first, returns true. Half of the pairs with equal scores
// count as correct. Failed candidates, with a latency of 0, are ignored.
func Pairwise(latencies, scores []float64, apart func(fast, slow int) bool) Share {
	order := measured(latencies)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(latencies[a], latencies[b]) })
	right, pairs := 0.0, 0
	for i, fast := range order {
		for _, slow := range order[i+1:] {
			if !apart(fast, slow) {
				continue
			}
			pairs++
			switch {
			case scores[fast] > scores[slow]:
				right++
			case scores[fast] == scores[slow]:
				right += 0.5
			}
		}
	}
	return Share{Pairs: pairs, Right: right / float64(max(1, pairs))}
}

// Recall returns the fraction of the fastest candidates among equally many of the best scores. top is the fraction of
// candidates that count as fastest, at least one.
func Recall(latencies, scores []float64, top float64) float64 {
	fastest := measured(latencies)
	best := slices.Clone(fastest)
	n := min(len(best), max(1, int(top*float64(len(best))+0.5)))
	if n == 0 {
		return 0
	}
	slices.SortStableFunc(fastest, func(a, b int) int { return cmp.Compare(latencies[a], latencies[b]) })
	slices.SortStableFunc(best, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	found := 0
	for _, k := range best[:n] {
		if slices.Contains(fastest[:n], k) {
			found++
		}
	}
	return float64(found) / float64(n)
}

// Regret returns the relative slowdown of the fastest of the n best-scored candidates against the fastest of all.
func Regret(latencies, scores []float64, n int) float64 {
	order := measured(latencies)
	if len(order) == 0 {
		return 0
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	found, best := latencies[order[0]], latencies[order[0]]
	for k, c := range order {
		best = min(best, latencies[c])
		if k < n {
			found = min(found, latencies[c])
		}
	}
	return found/best - 1
}

// Off returns the typical factor between predicted and measured latencies: the exponential of the root mean square of
// the logarithmic error. Scores are base-2 logarithms of throughputs, up to a constant.
func Off(latencies, scores []float64) float64 {
	order := measured(latencies)
	if len(order) == 0 {
		return 1
	}
	sum, squares := 0.0, 0.0
	for _, k := range order {
		e := scores[k] + math.Log2(latencies[k])
		sum, squares = sum+e, squares+e*e
	}
	n := float64(len(order))
	return math.Exp2(math.Sqrt(max(0, squares/n-sum/n*sum/n)))
}

// measured returns the indices of the candidates that did not fail.
func measured(latencies []float64) []int {
	var list []int
	for k, l := range latencies {
		if l > 0 {
			list = append(list, k)
		}
	}
	return list
}
