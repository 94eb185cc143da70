// Package attention is the sketch of softmax attention whose scores never become a tensor in memory.
package attention
