// Package sketch cuts a workload into nests of loops, whatever device they are for: rules read its expressions and
// decide what is inlined and which stages share a nest, and the sketches of a kind of device, which are given, say how
// a nest is built. The numbers that the sketch of the heaviest nest leaves open are the knobs of the space. Begin to
// read at New.
package sketch
