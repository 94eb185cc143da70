package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Shards registers a metric with the number of shards.
func Shards(reg prometheus.Registerer, count int) error {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "tilth_tracker_shards", Help: "Shards of the store."})
	g.Set(float64(max(count, 1)))
	return reg.Register(g)
}

// Active registers a metric that reports whether the tracker is active or on standby.
func Active(reg prometheus.Registerer, serves bool) error {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "tilth_tracker_active", Help: "1 if the tracker serves, 0 if it stands by because another tracker holds the database.",
	})
	if serves {
		g.Set(1)
	}
	return reg.Register(g)
}
