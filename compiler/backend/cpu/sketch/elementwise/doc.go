// Package elementwise is the sketch of maps: each element of the result is computed by itself.
package elementwise
