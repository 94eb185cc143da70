package telemetry

import "github.com/prometheus/client_golang/prometheus"

// collector exports metrics that are computed from a snapshot of the state on demand.
type collector[S any] struct {
	snapshot func() S
	metrics  []metric[S]
}

// metric is a metric of a snapshot. collect passes each of its series to emit. A scrape reports its error.
type metric[S any] struct {
	desc    *prometheus.Desc
	kind    prometheus.ValueType
	collect func(of S, emit emitFunc) error
}

type emitFunc func(value float64, labels ...string)

// Describe implements prometheus.Collector.
func (c *collector[S]) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range c.metrics {
		ch <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector[S]) Collect(ch chan<- prometheus.Metric) {
	of := c.snapshot()
	for _, m := range c.metrics {
		err := m.collect(of, func(value float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(m.desc, m.kind, value, labels...)
		})
		if err != nil {
			ch <- prometheus.NewInvalidMetric(m.desc, err)
		}
	}
}

// desc describes a metric of the tracker.
func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("tilth_tracker_"+name, help, labels, nil)
}

// gauge returns a gauge of the tracker with a single series.
func gauge[S any](name, help string, value func(of S) float64) metric[S] {
	return gauges(name, help, nil, func(of S, emit emitFunc) { emit(value(of)) })
}

// gauges returns a gauge of the tracker with labels.
func gauges[S any](name, help string, labels []string, collect func(of S, emit emitFunc)) metric[S] {
	return metric[S]{desc(name, help, labels...), prometheus.GaugeValue, func(of S, emit emitFunc) error {
		collect(of, emit)
		return nil
	}}
}

// counted returns the metric as a counter.
func (m metric[S]) counted() metric[S] {
	m.kind = prometheus.CounterValue
	return m
}
