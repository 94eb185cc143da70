// Package machine is the model of a processor that analytic costs and features are made of: how many instructions it
// does at a time, what waiting for results and for memory costs, what its caches hold, and what a parallel region
// costs. Each constant has its unit, and says how it was found and where; "estimated" means that nobody measured it
// alone. What differs between targets, their vectors, registers, caches and threads, is read from them. The model
// knows no schedules: begin with core.go, then memory.go.
package machine
