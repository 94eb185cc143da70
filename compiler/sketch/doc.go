// Package sketch generates schedules for workloads on any kind of device. Rules inspect the expressions of a
// workload and decide which stages are inlined and which share a nest of loops; the sketches for a kind of device,
// which are parameters, build each nest. The knobs are the free parameters of the sketch of the most expensive loop
// nest. Start with New.
package sketch
