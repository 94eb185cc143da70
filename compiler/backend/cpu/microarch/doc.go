// Package microarch models a processor for analytic costs and features: instruction throughput and latency, memory
// costs, cache capacities, and the cost of a parallel region. Each constant documents its unit, how it was
// determined, and where. "Estimated" means that no measurement isolates it. Properties of a target, such as vectors,
// registers, caches and threads, come from the target. The model is independent of schedules. Start with core.go,
// then read memory.go.
package microarch
