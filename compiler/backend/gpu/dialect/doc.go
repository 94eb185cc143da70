// Package dialect has the words that kernels for GPUs are printed in, and what they mean on each kind of device: on a
// processor that plays a GPU, and looks for the mistakes that a GPU does not tell. words.go lists them.
// Kernels use nothing but scalar C and these words, so that one text serves all devices. Begin to read at
// simulated/words.h; simulated/block.h has what runs a block.
package dialect
