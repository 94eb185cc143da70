// Package elementwise is the sketch of results that do not share what they read: each thread of a GPU computes its
// own.
package elementwise
