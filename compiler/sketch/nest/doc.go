// Package nest is what sketches share: the stages that one nest of loops computes, primitives applied one after the
// other, choices of numbers, and looks at stages. It knows no sketch and no device.
package nest
