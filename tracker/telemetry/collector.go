package telemetry

import "github.com/prometheus/client_golang/prometheus"

// collector exports metrics that are computed from one reading of F on demand.
type collector[F any] struct {
	read     func() F
	families []family[F]
}

// family is a metric of a collector. each emits its values.
type family[F any] struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	each func(f F, emit func(value float64, labels ...string))
}

// gauge returns a family with one value.
func gauge[F any](name, help string, value func(F) float64) family[F] {
	return gauges(name, help, nil, func(f F, emit func(float64, ...string)) { emit(value(f)) })
}

// gauges returns a family with a value for each combination of labels.
func gauges[F any](name, help string, labels []string, each func(f F, emit func(value float64, labels ...string))) family[F] {
	return family[F]{prometheus.NewDesc("tilth_tracker_"+name, help, labels, nil), prometheus.GaugeValue, each}
}

// counters is gauges for values that only increase.
func counters[F any](name, help string, labels []string, each func(f F, emit func(value float64, labels ...string))) family[F] {
	return family[F]{prometheus.NewDesc("tilth_tracker_"+name, help, labels, nil), prometheus.CounterValue, each}
}

// Describe implements prometheus.Collector.
func (c *collector[F]) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range c.families {
		ch <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector[F]) Collect(ch chan<- prometheus.Metric) {
	f := c.read()
	for _, m := range c.families {
		m.each(f, func(value float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(m.desc, m.kind, value, labels...)
		})
	}
}
