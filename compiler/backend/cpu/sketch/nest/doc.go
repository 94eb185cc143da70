// Package nest is what sketches share: the stages that one nest of loops computes, primitives applied one after the
// other, what fits the registers, choices of numbers, and looks at stages. It knows no sketch.
package nest
