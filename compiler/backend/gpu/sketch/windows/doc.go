// Package windows is the sketch of reductions over windows that keep channels apart, such as depthwise convolution and
// pooling: a thread computes some neighbouring results of a channel. Begin to read at New.
package windows
