// Package attention is the sketch of softmax attention on a GPU: a block of threads computes some rows while it reads
// keys and values piece by piece, so that scores never lie in global memory. Begin to read at New.
package attention
