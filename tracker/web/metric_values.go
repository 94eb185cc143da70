package web

import (
	"strings"

	dto "github.com/prometheus/client_model/go"
)

// only returns the value of a metric with a single series; is reports whether it exists.
func (m metrics) only(name string) (v float64, is bool) {
	for _, one := range m[name].GetMetric() {
		return value(one), true
	}
	return 0, false
}

// where sums the series of a metric whose label has the prefix; an empty prefix matches all.
func (m metrics) where(name, label, prefix string) (total float64) {
	for _, one := range m[name].GetMetric() {
		if strings.HasPrefix(labelOf(one, label), prefix) {
			total += value(one)
		}
	}
	return total
}

// max returns the largest sum of where over all shards.
func (m metrics) max(name, label, prefix string) (largest float64) {
	byShard := map[string]float64{}
	for _, one := range m[name].GetMetric() {
		if strings.HasPrefix(labelOf(one, label), prefix) {
			byShard[labelOf(one, "shard")] += value(one)
		}
	}
	for _, total := range byShard {
		largest = max(largest, total)
	}
	return largest
}

// labelOf returns the value of a metric's label, or "".
func labelOf(m *dto.Metric, label string) string {
	for _, pair := range m.GetLabel() {
		if pair.GetName() == label {
			return pair.GetValue()
		}
	}
	return ""
}

// slower counts a histogram's samples, and those above a limit, to the precision of its buckets.
func (m metrics) slower(name string, limit float64) (all, slow float64) {
	for _, one := range m[name].GetMetric() {
		h := one.GetHistogram()
		all += float64(h.GetSampleCount())
		within := uint64(0)
		for _, b := range h.GetBucket() {
			if within = b.GetCumulativeCount(); b.GetUpperBound() >= limit {
				break
			}
		}
		slow += float64(h.GetSampleCount() - within)
	}
	return all, slow
}
