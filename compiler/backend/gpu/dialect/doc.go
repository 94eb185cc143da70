// Package dialect has the words that kernels for GPUs are printed in, and what they mean on each kind of device: today
// on a processor that plays a GPU, and looks for the mistakes that a GPU would not tell. docs/gpu.md has a table of
// them.
package dialect
