package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Active registers the metric that says whether a tracker serves, or stands by.
func Active(reg prometheus.Registerer, serves bool) error {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "tilth_tracker_active", Help: "1 while the tracker serves, 0 while it stands by since another one has the database.",
	})
	if serves {
		g.Set(1)
	}
	return reg.Register(g)
}
